//! What is special about `file:`: one machine, a directory, the kernel's word on who lives.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use fencelock::Client;

use crate::site::{Site, lock, ms, queue_up, soon, until};

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Descriptors of this process in the directory; other tests have some, too.
fn open_files(site: &Site) -> usize {
    let directory = Path::new(site.url.strip_prefix("file://").unwrap());
    let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    open.filter_map(|entry| entry.path().read_link().ok())
        .filter(|file| file.starts_with(directory))
        .count()
}

fn processor_time() -> std::time::Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    ms(ticks * 10)
}

#[tokio::test]
async fn g10_a_directory_that_others_may_reach_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    std::fs::create_dir(at("open")).unwrap();
    std::fs::set_permissions(at("open"), PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::create_dir(at("real")).unwrap();
    std::fs::set_permissions(at("real"), PermissionsExt::from_mode(0o700)).unwrap();
    symlink(at("real"), at("link")).unwrap();
    std::fs::write(at("plain"), "").unwrap();
    for name in ["open", "link", "link/", "link/.", "plain", "plain/below"] {
        let error = Client::connect(&format!("file://{}", at(name).display())).await.unwrap_err();
        assert_eq!(error.kind().code(), "INVALID_ARGUMENT", "{name}: {error}");
        assert!(error.to_string().contains("0700"), "{error}");
    }
    for url in ["file://host/dir", "file:relative?x=1", "file:///a?b=c"] {
        let error = Client::connect(url).await.unwrap_err();
        assert_eq!(error.kind().code(), "INVALID_ARGUMENT", "{url}: {error}");
    }
    // A missing directory is made, with its parents, and is private.
    let made = at("a/b c/locks");
    let url = url::Url::from_file_path(&made).unwrap();
    Client::connect(url.as_str()).await.unwrap().close().await;
    assert_eq!(std::fs::metadata(&made).unwrap().permissions().mode() & 0o777, 0o700);
}

#[tokio::test]
async fn g10_a_directory_of_another_user_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let theirs = home.path().join("theirs");
    std::fs::create_dir(&theirs).unwrap();
    std::fs::set_permissions(&theirs, PermissionsExt::from_mode(0o700)).unwrap();
    // Only root can give a directory away; for others a directory of root's serves.
    let path = match std::os::unix::fs::chown(&theirs, Some(12_345), Some(12_345)) {
        Ok(()) => theirs,
        Err(_) => "/root".into(),
    };
    let error = Client::connect(&format!("file://{}", path.display())).await.unwrap_err();
    assert_eq!(error.kind().code(), "INVALID_ARGUMENT", "{error}");
}

#[tokio::test]
async fn g7_nothing_but_the_mutex_and_the_last_token_stays_in_the_directory() {
    let site = Site::file();
    let directory = site.directory();
    let client = site.client().await;
    for round in 0..20 {
        let name = format!("{round}{}", "x".repeat(1_000));
        lock(&client, &name, ms(30_000)).acquire().await.unwrap().release().await.unwrap();
    }
    client.close().await;
    drop(client);
    let mut left = names(&directory);
    left.sort();
    assert_eq!(left, ["mutex", "token"]);
}

#[tokio::test]
async fn g3_tokens_rise_over_restarts_of_everything() {
    let site = Site::file();
    let mut last = None;
    for _ in 0..5 {
        let client = site.client().await;
        let lease = lock(&client, "a", ms(30_000)).acquire().await.unwrap();
        assert!(Some(lease.token()) > last);
        last = Some(lease.token());
        lease.release().await.unwrap();
        client.close().await;
    }
}

/// The file of a name outgrows one page, which takes another way to the disk.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g5_a_queue_longer_than_a_page_is_served_in_order() {
    let site = Site::file();
    let client = site.client().await;
    let holder = lock(&client, "a", ms(30_000)).acquire().await.unwrap();
    let mut waiting = Vec::new();
    for _ in 0..60 {
        waiting.push(queue_up(&client, &lock(&client, "a", ms(30_000))).await);
    }
    holder.release().await.unwrap();
    let mut last = holder.token();
    for contender in waiting {
        let lease = soon("a turn", contender).await.unwrap();
        assert!(lease.token() > last);
        last = lease.token();
        lease.release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_thousand_names_need_no_descriptor_each() {
    let site = Site::file();
    let client = site.client().await;
    let mut leases = Vec::new();
    for number in 0..5_000 {
        leases.push(lock(&client, &format!("name {number}"), ms(60_000)).acquire().await.unwrap());
    }
    let open = open_files(&site);
    assert!(open > 0 && open < 20, "{open} descriptors");
    assert_eq!(client.list().await.unwrap().len(), 5_000);
    assert!(leases.iter().all(|lease| lease.is_held()));
    client.close().await;
}

#[test]
fn idle_contenders_do_not_spin() {
    // On one thread, so that the thread's processor time is all that they use.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let site = Site::file();
        let client = site.client().await;
        let holder = lock(&client, "a", ms(30_000)).acquire().await.unwrap();
        for _ in 0..100 {
            let lock = lock(&client, "a", ms(30_000));
            tokio::spawn(async move { drop(lock.acquire().await) });
        }
        until("all of them in the queue", || async {
            client.inspect("a").await.unwrap().queue.len() == 100
        })
        .await;
        let before = processor_time();
        tokio::time::sleep(ms(5_000)).await;
        let used = processor_time() - before;
        assert!(used < ms(500), "{used:?} of processor time in 5 s");
        drop(holder);
    });
}

#[tokio::test]
async fn a_file_that_is_not_ours_is_a_conflict_and_stays() {
    let site = Site::file();
    let client = site.client().await;
    let lease = lock(&client, "a", ms(30_000)).acquire().await.unwrap();
    let is_hash = |name: &String| name.len() == 32;
    let file = names(&site.directory()).into_iter().find(is_hash).unwrap();
    lease.release().await.unwrap();
    for (content, code) in [
        ("hello\n", "CONFLICT"),
        ("{\"layout\":2,\"name\":\"a\",\"holder\":null,\"queue\":[]}\n", "UNSUPPORTED"),
    ] {
        std::fs::write(site.directory().join(&file), content).unwrap();
        let error = lock(&client, "a", ms(30_000)).acquire().await.unwrap_err();
        assert_eq!(error.kind().code(), code, "{error}");
        assert_eq!(std::fs::read_to_string(site.directory().join(&file)).unwrap(), content);
    }
}

/// A tidy-up of temporary files took the mutex; those who have it open must not go on with it.
#[tokio::test]
async fn g1_a_mutex_that_was_removed_is_made_anew() {
    let site = Site::file();
    let (one, two) = (site.client().await, site.client().await);
    let lease = lock(&one, "a", ms(30_000)).acquire().await.unwrap();
    std::fs::remove_file(site.directory().join("mutex")).unwrap();
    assert!(lock(&two, "a", ms(30_000)).try_acquire().await.unwrap().is_none());
    assert!(site.directory().join("mutex").exists());
    lease.release().await.unwrap();
    assert!(lock(&two, "a", ms(30_000)).try_acquire().await.unwrap().is_some());
}

/// An acquire that nobody polls for a while must not keep others of the directory waiting.
#[tokio::test]
async fn g2_an_acquire_that_is_not_polled_holds_nobody_up() {
    let site = Site::file();
    let client = site.client().await;
    let holder = lock(&client, "a", ms(30_000)).acquire().await.unwrap();
    let waiting = lock(&client, "a", ms(30_000));
    let waiting = waiting.acquire();
    tokio::pin!(waiting);
    for _ in 0..20 {
        let _ = futures_util::poll!(waiting.as_mut());
        soon("another lock", lock(&client, "b", ms(30_000)).acquire())
            .await
            .unwrap()
            .release()
            .await
            .unwrap();
    }
    holder.release().await.unwrap();
    soon("the lock", waiting).await.unwrap().release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_make_one_directory_at_once_all_get_it() {
    let home = tempfile::tempdir().unwrap();
    for round in 0..20 {
        let url = format!("file://{}/{round}/deep/locks", home.path().display());
        let connecting = (0..4).map(|_| {
            let url = url.clone();
            tokio::spawn(async move { Client::connect(&url).await.map(drop) })
        });
        for connected in connecting.collect::<Vec<_>>() {
            connected.await.unwrap().unwrap();
        }
    }
}

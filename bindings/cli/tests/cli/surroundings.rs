//! URLs, descriptors, help, completions, the manual.

use std::process::Command;

use crate::site::{Ended, Running, Site};

fn plain(words: &[&str], url: Option<&str>) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencelock"));
    command.args(words).env_remove("FENCELOCK_URL");
    command.envs(url.map(|url| ("FENCELOCK_URL", url)));
    Running::start(command).end()
}

#[test]
fn without_a_url_locks_are_kept_in_files_of_this_machine() {
    let name = Site::file().name();
    let script = "ls -d /var/tmp/fencelock-$(id -u)";
    for url in [None, Some("")] {
        let ended = plain(&["run", &name, "--", "sh", "-c", script], url);
        assert_eq!(ended.code(), 0, "{ended:?}");
    }
}

#[test]
fn the_option_wins_over_the_environment() {
    let (site, other, name) = (Site::file(), Site::file(), "a");
    let holder = site.hold(name, &[]);
    assert_eq!(plain(&["run", "-n", name, "true"], Some(&site.url)).code(), 1);
    let words = ["run", "--url", &other.url, "-n", name, "true"];
    assert_eq!(plain(&words, Some(&site.url)).code(), 0);
    assert_eq!(plain(&["--url", &site.url, "run", "-n", name, "true"], None).code(), 1);
    assert_eq!(holder.end().code(), 0);
}

#[test]
fn g10_what_is_not_allowed_is_said_before_anything_is_done() {
    let nowhere = Some("redis://127.0.0.1:1/");
    for (words, url, code, why) in [
        (&["run", "--url", "", "a", "true"][..], None, 64, "--url is empty"),
        (&["run", "a", "true"], Some("memory:"), 64, "memory: locks nothing"),
        (&["run", "a", "true"], Some("Memory:x"), 64, "memory: locks nothing"),
        (&["run", "a", "true"], Some("gopher://x"), 78, "gopher"),
        (&["run", "a", "true"], Some("x"), 64, "scheme"),
        (&["run", "a", "true"], nowhere, 69, "cannot be reached"),
        (&["ls"], nowhere, 69, "cannot be reached"),
        (&["run", "a"], None, 64, "<CMD>"),
        (&["run"], None, 64, "<NAME>"),
        (&[], None, 64, "--help"),
        (&["frobnicate"], None, 64, "frobnicate"),
        (&["run", "--grace", "x", "a", "true"], None, 64, "--grace"),
        (&["man", "nosuch"], None, 64, "nosuch"),
        (&["run", "a", "--max-hld", "5m", "true"], None, 64, "options go before NAME"),
        (&["redis://u:geheim@h/", "run"], None, 64, "(a URL)"),
    ] {
        plain(words, url).assert_failed(code, why);
    }
    let site = Site::file();
    for (words, why) in [
        (&["run", "", "true"][..], "empty"),
        (&["run", "~fl", "true"], "~fl"),
        (&["run", "--ttl", "50ms", "a", "true"], "100 ms to 24 h"),
        (&["run", "--ttl", "25h", "a", "true"], "100 ms to 24 h"),
        (&["run", "--max-hold", "1s", "a", "true"], "longer than the ttl"),
        (&["run", "-w", "11000d", "a", "true"], "10 years"),
        (&["inspect", "~fl"], "~fl"),
        (&["wait", ""], "empty"),
    ] {
        site.ended(words).assert_failed(64, why);
    }
}

#[test]
fn the_last_of_an_option_counts_as_with_flock() {
    let site = Site::file();
    let name = site.name();
    let holder = site.hold(&name, &[]);
    let words = ["run", "-n", "-n", "-w", "50", "-w", "0", "-E", "8", "-E", "9", &name, "true"];
    site.ended(&words).assert_silent(9);
    assert_eq!(holder.end().code(), 0);
}

#[test]
fn a_name_that_begins_as_an_option() {
    let site = Site::file();
    for words in [&["run", "--", "-n", "--", "true"][..], &["run", "--", "-n", "true"]] {
        site.ended(words).assert_silent(0);
    }
}

#[test]
fn no_password_is_shown() {
    for url in [
        "redis://u:geheim@127.0.0.1:1/",
        "mongodb://u:geheim@127.0.0.1:1/?serverSelectionTimeoutMS=100",
        "x:geheim",
    ] {
        let ended = plain(&["ls"], Some(url));
        assert!(ended.code() != 0 && !ended.errors.contains("geheim"), "{ended:?}");
    }
}

#[test]
fn the_command_gets_no_descriptor_of_ours() {
    for site in
        [Site::file(), Site::server("REDIS"), Site::server("MONGODB"), Site::server("ZOOKEEPER")]
    {
        let list = "ls -l /proc/self/fd | sed 's/.*[0-9] -> //' | grep -v /proc/ | sort";
        let bare = {
            let mut command = Command::new("sh");
            command.args(["-c", list]);
            Running::start(command).end()
        };
        let ours = site.ended(&["run", &site.name(), "--", "sh", "-c", list]);
        assert_eq!(ours.output.lines().count(), bare.output.lines().count(), "{ours:?} {bare:?}");
    }
}

#[test]
fn help_and_version_are_no_failures() {
    assert_eq!(
        plain(&["--version"], None).output,
        format!("fencelock {}\n", env!("CARGO_PKG_VERSION"))
    );
    for words in [&["--help"][..], &["-h"], &["help"], &["run", "--help"], &["help", "run"]] {
        let ended = plain(words, None);
        assert_eq!((ended.code(), &*ended.errors), (0, ""), "{words:?}");
        for code in ["64", "69", "77", "128 + n"] {
            assert!(ended.output.contains(&format!("\n  {code} ")), "{code} {words:?}");
        }
    }
    let run = plain(&["run", "--help"], None).output;
    for word in [
        "  75 ",
        "  76 ",
        "  126 ",
        "  127 ",
        "-n, --nonblock",
        "-w, --wait <SECS>",
        "FENCELOCK_URL",
        "password",
    ] {
        assert!(run.contains(word), "{word}: {run}");
    }
}

#[test]
fn there_are_completions_for_each_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ended = plain(&["completions", shell], None);
        assert!(ended.code() == 0 && ended.output.contains("inspect"), "{shell}");
    }
    let bash = "source <(\"$fencelock\" completions bash) && complete -p fencelock";
    let mut command = Command::new("bash");
    command.args(["-c", bash]).env("fencelock", env!("CARGO_BIN_EXE_fencelock"));
    let ended = Running::start(command).end();
    assert!(ended.code() == 0 && ended.output.contains("fencelock"), "{ended:?}");
}

#[test]
fn the_manual_has_a_page_for_each_command() {
    for command in ["", "run", "ls", "inspect", "break", "wait", "completions", "man"] {
        let words: Vec<&str> =
            ["man", command].into_iter().filter(|word| !word.is_empty()).collect();
        let page = plain(&words, None).output;
        let title = ["fencelock", command].join("-").trim_end_matches('-').to_owned();
        assert!(page.contains(&format!(".TH {title} 1")), "{page}");
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "ENVIRONMENT"] {
            assert!(
                page.contains(&format!(".SH \"{section}\""))
                    || page.contains(&format!(".SH {section}\n")),
                "{section}: {page}"
            );
        }
    }
}

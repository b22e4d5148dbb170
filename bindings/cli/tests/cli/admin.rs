//! ls, inspect, break and wait.

use serde_json::{Value, json};

use crate::site::{Site, on_each_backend};

fn listed(site: &Site, pattern: &str) -> Vec<Value> {
    let ended = site.ended(&["ls", "--json", pattern]);
    assert_eq!(ended.code(), 0, "{ended:?}");
    serde_json::from_str(&ended.output).unwrap()
}

on_each_backend! {
    fn inspect_shows_the_holder_and_who_waits(site) {
        let name = site.name();
        let free = json!({
            "name": name, "state": "free", "owner": null, "token": null, "held_ms": null,
            "ttl_left_ms": null, "metadata": null, "queue": [],
        });
        assert_eq!(site.inspect(&name), free);
        let holder = site.hold(&name, &[]);
        let waiting = site.start(&["run", &name, "true"]);
        site.wait_for_queue(&name, 1);
        let held = site.inspect(&name);
        assert_eq!((&held["name"], &held["state"]), (&json!(name), &json!("held")));
        assert_eq!(held["owner"].as_str().unwrap().len(), 32);
        assert!(held["token"].as_u64().unwrap() > 0);
        let who = |of: &Value| of["metadata"].as_str().unwrap().to_owned();
        assert!(who(&held).ends_with(&format!("pid={} lang=shell", holder.pid())), "{held}");
        let waiter = &held["queue"][0];
        assert!(who(waiter).ends_with(&format!("pid={} lang=shell", waiting.pid())), "{held}");
        assert!(waiter["owner"].as_str().unwrap().len() == 32 && waiter["waiting_ms"].is_u64());
        let mut fields: Vec<&String> = held.as_object().unwrap().keys().collect();
        let mut known: Vec<&String> = free.as_object().unwrap().keys().collect();
        fields.sort();
        known.sort();
        assert_eq!(fields, known);

        let text = site.ended(&["inspect", &name]).output;
        let rows: Vec<&str> = text.lines().map(|line| line.split("  ").next().unwrap()).collect();
        assert_eq!((rows[0], rows[1]), ("name", "state"), "{text}");
        assert!(text.contains("state     held\n") && text.contains("\nqueue     1\n"), "{text}");
        assert!(text.contains(", waiting for "), "{text}");
        assert_eq!(holder.end().code(), 0);
        waiting.end().assert_silent(0);
        assert_eq!(site.inspect(&name), free);
    }

    fn ls_shows_what_matches(site) {
        let name = site.name();
        let names = [format!("{name}/a"), format!("{name}/b/c"), format!("{name}[x]")];
        let holders: Vec<_> = names.iter().map(|name| site.hold(name, &[])).collect();
        for (pattern, expected) in [
            (format!("{name}*"), vec![0, 1, 2]),
            (format!("{name}***"), vec![0, 1, 2]),
            (format!("{name}/*"), vec![0, 1]),
            (format!("{name}/?"), vec![0]),
            (format!("{name}/[!a]*"), vec![1]),
            (format!("{name}[[]x]"), vec![2]),
            (format!("{name}/A"), vec![]),
            (name.clone(), vec![]),
        ] {
            let mut found: Vec<_> =
                listed(site, &pattern).iter().map(|lock| lock["name"].clone()).collect();
            found.sort_by_key(ToString::to_string);
            let mut expected: Vec<_> = expected.iter().map(|&i: &usize| json!(names[i])).collect();
            expected.sort_by_key(ToString::to_string);
            assert_eq!(found, expected, "{pattern}");
        }
        let shown = listed(site, &names[0]);
        assert_eq!(shown[0]["state"], "held");
        assert_eq!(shown[0]["owner"], site.inspect(&names[0])["owner"]);
        let table = site.ended(&["ls", &format!("{name}*")]).output;
        assert!(table.starts_with("NAME ") && table.lines().count() == 4, "{table}");
        let all: Vec<Value> =
            serde_json::from_str(&site.ended(&["ls", "--json"]).output).unwrap();
        assert!(names.iter().all(|name| all.iter().any(|lock| lock["name"] == **name)));
        holders.into_iter().for_each(|holder| drop(holder.end()));
        site.ended(&["ls", &format!("{name}*")]).assert_silent(0);
    }

    fn break_ends_a_lease_only_where_it_may(site) {
        let name = site.name();
        site.ended(&["break", "--yes", &name]).assert_failed(1, "is held by nobody");
        let holder = site.hold(&name, &[]);
        let owner = site.inspect(&name)["owner"].clone();
        site.ended(&["break", &name]).assert_failed(64, "--yes");
        assert_eq!(site.inspect(&name)["owner"], owner);
        let broken = site.ended(&["break", "-y", "--json", &name]);
        assert_eq!(broken.code(), 0, "{broken:?}");
        let broken: Value = serde_json::from_str(&broken.output).unwrap();
        assert_eq!((&broken["broken"], &broken["owner"]), (&json!(true), &owner));
        site.ended(&["run", "-w", "50", &name, "true"]).assert_silent(0);
        drop(holder);
    }

    fn wait_is_over_when_those_before_are_done(site) {
        let name = site.name();
        site.ended(&["wait", &name]).assert_silent(0);
        let holder = site.hold(&name, &[]);
        site.ended(&["wait", "-n", &name]).assert_silent(1);
        site.ended(&["wait", "-w", "0.2", "-E", "9", &name]).assert_silent(9);
        let late = site.ended(&["wait", "-w", "0.2", "--json", &name]);
        let waited: Value = serde_json::from_str(&late.output).unwrap();
        assert_eq!((late.code(), &waited["state"]), (1, &json!("held")));
        assert!(waited["waited_ms"].as_u64().unwrap() >= 200);

        let before = site.start(&["run", &name, "true"]);
        site.wait_for_queue(&name, 1);
        let waiting = site.start(&["wait", "--json", &name]);
        site.wait_for_queue(&name, 2);
        assert_eq!(holder.end().code(), 0);
        before.end().assert_silent(0);
        let ended = waiting.end();
        let waited: Value = serde_json::from_str(&ended.output).unwrap();
        assert_eq!(waited["state"], "free", "{ended:?}");
        // It does not keep what it waited for.
        site.ended(&["run", "-n", &name, "true"]).assert_silent(0);
    }
}

#[test]
fn a_name_that_a_terminal_would_obey_is_shown_harmless() {
    let site = Site::file();
    let name = "a\x1b[2J\nb";
    let holder = site.hold(name, &[]);
    for words in [&["ls"][..], &["inspect", name]] {
        let ended = site.ended(words);
        assert!(
            !ended.output.contains('\x1b') && ended.output.contains("\\u{1b}[2J\\nb"),
            "{ended:?}"
        );
    }
    assert_eq!(site.inspect(name)["name"], name);
    assert_eq!(holder.end().code(), 0);
}

#[test]
fn a_pattern_that_is_none_is_refused() {
    Site::file().ended(&["ls", "a["]).assert_failed(64, "pattern");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let site = Site::file();
    let bin = env!("CARGO_BIN_EXE_fencelock");
    let mut command = std::process::Command::new("bash");
    let script = format!("{bin} man run | true; echo ${{PIPESTATUS[0]}}");
    command.args(["-c", &script]).env("FENCELOCK_URL", &site.url);
    let ended = crate::site::Running::start(command).end();
    assert_eq!((&*ended.output, &*ended.errors), ("0\n", ""));
}

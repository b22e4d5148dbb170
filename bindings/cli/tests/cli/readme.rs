//! The commands of both READMEs do what stands beside them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::site::{Ended, Running, Site};

/// Runs the shell blocks of a section one after the other, as one script that stops at the first
/// failure, with a server and a name of the test's own.
fn run(readme: &str, section: &str) -> Ended {
    let site = Site::server("REDIS");
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(readme)).unwrap();
    let (_, text) = text.split_once(&format!("\n## {section}\n")).unwrap();
    let text = text.split("\n## ").next().unwrap();
    let blocks = text.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap());
    let script = blocks.collect::<String>();
    assert!(script.contains("redis://127.0.0.1/") && script.contains("nightly"), "{script}");
    let script = script.replace("redis://127.0.0.1/", &site.url).replace("nightly", &site.name());

    let backup = site.path("backup");
    fs::write(&backup, "#!/bin/sh\necho backup\n").unwrap();
    fs::set_permissions(&backup, fs::Permissions::from_mode(0o755)).unwrap();
    let built = Path::new(env!("CARGO_BIN_EXE_fencelock")).parent().unwrap().display().to_string();
    let mut shell = Command::new("bash");
    shell
        .args(["-euc", &script])
        .current_dir(site.folder.path())
        .env("PATH", format!("{built}:{}", std::env::var("PATH").unwrap()))
        .env_remove("FENCELOCK_URL");
    Running::start(shell).end()
}

#[test]
fn usage_of_this_binding() {
    let ended = run("README.md", "Usage");
    assert_eq!(ended.code(), 0, "{ended:?}");
    assert_eq!(ended.output.matches("working\n").count(), 3, "{ended:?}");
    assert!(ended.output.contains("working as number 1"), "{ended:?}");
    assert!(ended.output.contains("state     free"), "{ended:?}");
    assert!(ended.output.contains("nobody held it"), "{ended:?}");
}

#[test]
fn quick_start_of_the_repository() {
    let ended = run("../../README.md", "Quick start: the shell");
    assert_eq!(ended.code(), 0, "{ended:?}");
    assert_eq!(ended.output.matches("backup\n").count(), 2, "{ended:?}");
    assert!(ended.output.contains("state     free"), "{ended:?}");
}

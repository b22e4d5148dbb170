//! Makes `include/fencelock.h` from the sources of the C binding. `header` writes it, and the test
//! here fails when it is not what would be written.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use cbindgen::{Builder, Config, Language, Style};

/// In the order in which a reader wants them. What is not here is not for the public.
const SOURCES: &[&str] =
    &["version", "errors", "options", "client", "lock", "operation", "lease", "info", "log"];

fn main() -> Result<()> {
    let header = header()?;
    fs::write(path(), header).with_context(|| format!("cannot write {}", path().display()))
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../include/fencelock.h")
}

fn header() -> Result<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let preamble = fs::read_to_string(folder.join("preamble.h"))?;
    let config = Config {
        language: Language::C,
        cpp_compat: true,
        style: Style::Type,
        header: Some(preamble.trim_end().to_owned()),
        include_guard: Some("FENCELOCK_H".to_owned()),
        no_includes: true,
        sys_includes: ["stdbool.h", "stddef.h", "stdint.h"].map(str::to_owned).to_vec(),
        after_includes: Some(version()),
        usize_is_size_t: true,
        ..Config::default()
    };
    let sources = SOURCES.iter().map(|source| folder.join(format!("../src/{source}.rs")));
    let builder = Builder::new().with_config(config);
    let mut header = Vec::new();
    sources.fold(builder, Builder::with_src).generate()?.write(&mut header);
    Ok(String::from_utf8(header)?)
}

/// The version of the workspace, to be compared when a program is compiled.
fn version() -> String {
    let part = |name: &str, value: &str| format!("#define FENCELOCK_VERSION{name} {value}\n");
    let whole = env!("CARGO_PKG_VERSION");
    let mut lines = String::from("\n/**\n * The version of this header.\n */\n");
    lines += &part("", &format!("\"{whole}\""));
    lines += &part("_MAJOR", env!("CARGO_PKG_VERSION_MAJOR"));
    lines += &part("_MINOR", env!("CARGO_PKG_VERSION_MINOR"));
    lines += &part("_PATCH", env!("CARGO_PKG_VERSION_PATCH"));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_what_the_sources_say() {
        let committed = fs::read_to_string(path()).unwrap();
        let differs = header().unwrap() != committed;
        assert!(!differs, "include/fencelock.h is out of date: run `make c-header`");
    }
}

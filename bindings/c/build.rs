//! How the shared library is linked.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let major = std::env::var("CARGO_PKG_VERSION_MAJOR").unwrap_or_default();
    let argument = |argument: &str| println!("cargo::rustc-cdylib-link-arg=-Wl,{argument}");
    match std::env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("macos") => argument(&format!("-install_name,@rpath/libfencelock.{major}.dylib")),
        _ => {
            argument(&format!("-soname,libfencelock.so.{major}"));
            // Its threads live as long as the process: they must not lose their code to dlclose.
            argument("-z,nodelete");
            // The linker itself makes some symbols for a crate that collects statics; rustc's list
            // of what is exported does not reach them.
            argument("-z,start-stop-visibility=hidden");
        }
    }
}

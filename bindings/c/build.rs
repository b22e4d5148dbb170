//! How the shared library is linked.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let number = |part| std::env::var(part).unwrap_or_default();
    // Before 1.0 another minor version may have another interface.
    let abi = match &*number("CARGO_PKG_VERSION_MAJOR") {
        "0" => format!("0.{}", number("CARGO_PKG_VERSION_MINOR")),
        major => major.to_owned(),
    };
    let argument = |argument: &str| println!("cargo::rustc-cdylib-link-arg=-Wl,{argument}");
    match std::env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("macos") => argument(&format!("-install_name,@rpath/libfencelock.{abi}.dylib")),
        _ => {
            argument(&format!("-soname,libfencelock.so.{abi}"));
            // Its threads live as long as the process: they must not lose their code to dlclose.
            argument("-z,nodelete");
            // The linker itself makes some symbols for a crate that collects statics; rustc's list
            // of what is exported does not reach them.
            argument("-z,start-stop-visibility=hidden");
        }
    }
}

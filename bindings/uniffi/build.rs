//! Linking.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The JVM unloads a library with the class loader that loaded it. Our threads would go on in
    // code that is not there any more.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}

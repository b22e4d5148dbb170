//! uniffi's own tool, in the version that the lock file names.

fn main() {
    uniffi::uniffi_bindgen_main();
}

//! Lets the linker leave Node's own symbols open where it insists on knowing them (macOS).

fn main() {
    napi_build::setup();
}

// swift-tools-version:5.9
import PackageDescription

// Run `make uniffi` first: it writes the generated sources and builds the native library, whose folder
// the linker and the program must be told of (see ../README.md).
let package = Package(
    name: "Fencelock",
    platforms: [.macOS(.v13)],
    products: [.library(name: "Fencelock", targets: ["Fencelock"])],
    targets: [
        .systemLibrary(name: "fencelock_uniffiFFI"),
        .target(name: "Fencelock", dependencies: ["fencelock_uniffiFFI"]),
        .testTarget(name: "FencelockTests", dependencies: ["Fencelock"]),
    ]
)

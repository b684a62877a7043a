//! Compiles the library that is loaded before programs: a crate of its own, without dependencies, which the compiler of
//! this build makes in a second. It is loaded beside whatever C library a program has, so it is linked to none.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=library");
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let output = PathBuf::from(variable("OUT_DIR")).join("libtulpar_io.so");
    let known = variable("CARGO_CFG_TARGET_OS") == "linux"
        && ["x86_64", "aarch64"].contains(&variable("CARGO_CFG_TARGET_ARCH").as_str());
    if !known {
        println!("cargo::warning=no I/O recording on this kind of machine: only Linux on x86-64 and aarch64");
        std::fs::write(&output, []).expect("cargo's own folder can be written to");
        return;
    }
    let mut command = Command::new(variable("RUSTC"));
    command
        .args(["--edition", "2024", "--crate-name", "tulpar_io", "--crate-type", "cdylib"])
        .args(["--target", &variable("TARGET")])
        .args(["-C", "opt-level=3", "-C", "panic=abort", "-C", "codegen-units=1", "-C", "lto=fat"])
        .args(["-C", "strip=symbols", "-C", "target-feature=-crt-static", "-C", "relocation-model=pic"])
        .args(["-C", "link-arg=-nostdlib", "-C", "link-arg=-nostartfiles"])
        .args(["library/main.rs", "-o"])
        .arg(&output);
    let linker = variable("RUSTC_LINKER");
    if !linker.is_empty() {
        command.arg("-C").arg(format!("linker={linker}"));
    }
    let status = command.status().expect("the compiler of this build can be started");
    assert!(status.success(), "the library that records I/O cannot be compiled");
}

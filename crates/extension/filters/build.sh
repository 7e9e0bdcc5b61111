#!/bin/sh
# Builds the filters beside this script for WebAssembly; the results are committed, and tests use
# them as they are. Needs clang and wasm-ld (Debian: clang-14, lld-14) and a rustc with the target
# wasm32-unknown-unknown (Debian: rustc, libstd-rust-dev-wasm32; rustup: target add).
set -eu
cd "$(dirname "$0")"
clang=${CLANG:-clang-14}
rustc=${RUSTC:-rustc}
flags="--target=wasm32 -std=c11 -O2 -ffreestanding -nostdlib -I../../../bindings/c/include
    -Wl,--no-entry -Wl,--export-table -Wl,--strip-all -z stack-size=65536"
# shellcheck disable=SC2086
"$clang" $flags -o sums.wasm sums.c
# shellcheck disable=SC2086
"$clang" $flags -o ../tests/filters/faults.wasm ../tests/filters/faults.c
"$rustc" --target wasm32-unknown-unknown --crate-type cdylib -C opt-level=3 -C panic=abort \
    -C strip=symbols -C link-arg=--export-table -C link-arg=-zstack-size=65536 \
    --edition 2021 -o mean.wasm mean.rs

//! Host of the component in Rust: answers the questions from standard input, one per line.
//!
//! The build needs `retry.wit` of `core/hosts/component` next to the manifest; the tests copy both to their cache.
//!
//! Usage: `component-host COMPONENT`. A path that ends with `.wasm` needs the feature `compiler`; any other is machine
//! code. Each line of output has the answer and its clauses, or the word error and its text, between tabs. Prints the
//! durations to standard error at the end. Exit statuses: 0 if all questions were answered, 1 if the component cannot run
//! or traps, 2 without an argument.

use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

use wasmtime::component::{Component, Linker};
use wasmtime::{Engine, Result, Store};

wasmtime::component::bindgen!({ path: "retry.wit", world: "retry" });

fn load(engine: &Engine, path: &str) -> Result<Component> {
    #[cfg(feature = "compiler")]
    if path.ends_with(".wasm") {
        return Component::from_file(engine, path);
    }
    // SAFETY: the tests wrote the machine code themselves, with wasmtime.
    unsafe { Component::deserialize_file(engine, path) }
}

fn main() -> Result<()> {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: component-host COMPONENT");
        std::process::exit(2);
    };
    let engine = Engine::default();
    let began = Instant::now();
    let component = load(&engine, &path)?;
    let loaded = Instant::now();
    let mut store = Store::new(&engine, ());
    let retry = Retry::instantiate(&mut store, &component, &Linker::new(&engine))?;
    let instantiated = Instant::now();
    let (mut calls, mut spent) = (0, Duration::ZERO);
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let question = line?;
        let asked = Instant::now();
        let result = retry
            .triclinium_retry_decisions()
            .call_decide(&mut store, &question)?;
        spent += asked.elapsed();
        calls += 1;
        match result {
            Ok(decision) => writeln!(
                output,
                "{}\t{}",
                decision.answer,
                decision.clauses.join("\t")
            )?,
            Err(text) => writeln!(output, "error\t{text}")?,
        }
    }
    eprintln!(
        "{{\"load_s\": {}, \"instantiate_s\": {}, \"us_per_call\": {}}}",
        (loaded - began).as_secs_f64(),
        (instantiated - loaded).as_secs_f64(),
        spent.as_secs_f64() * 1e6 / f64::from(calls.max(1)),
    );
    Ok(())
}

//! One process of Rust in the contest of languages, see `README.md`.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};

use anyhow::{Context, Result, ensure};
use fencelock::blocking::Client;

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    ensure!(arguments.len() == 4, "usage: peer URL NAME ROUNDS FILE");
    let (url, name, rounds, file) =
        (&arguments[0], &arguments[1], arguments[2].parse::<u32>()?, &arguments[3]);

    let client = Client::connect(url)?;
    let lock = client.lock(name)?;
    println!("ready");
    io::stdin().read_to_end(&mut Vec::new())?;
    for _ in 0..rounds {
        let lease = lock.acquire()?;
        let number: u32 = fs::read_to_string(file)?.parse().context("the number")?;
        fs::write(file, (number + 1).to_string())?;
        let mut tokens = OpenOptions::new().append(true).open(format!("{file}.tokens"))?;
        writeln!(tokens, "rust {}", lease.token())?;
        lease.release()?;
    }
    client.close();
    Ok(())
}

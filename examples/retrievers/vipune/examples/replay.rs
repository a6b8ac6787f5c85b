//! The calls of a recorded conversation, made on vipune directly: what `benchmarks/protocol.py` holds the protocol against.
//!
//! `replay FILE` reads request lines, decodes all of them, and only then makes the calls. It prints the seconds that
//! the calls took, loading the model included.

#[path = "../src/store.rs"]
mod store;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;
use std::error::Error;
use std::fs::File;
use std::hint::black_box;
use std::io::{BufRead, BufReader};
use std::time::Instant;
use store::Store;

type Fallible<T> = Result<T, Box<dyn Error>>;

struct Row {
    id: String,
    text: String,
    created_at: String,
    vector: Vec<f32>,
}

enum Call {
    Open(String),
    Insert(String, Vec<Row>),
    Hybrid(String, Vec<f32>, usize),
    Semantic(Vec<f32>, usize),
    Close,
}

fn text(message: &Value, key: &str) -> Fallible<String> {
    Ok(message[key].as_str().ok_or(key)?.to_owned())
}

fn vector(message: &Value) -> Fallible<Vec<f32>> {
    Ok(BASE64_STANDARD
        .decode(text(message, "vector")?)?
        .chunks_exact(4)
        .map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]))
        .collect())
}

fn row(message: &Value) -> Fallible<Row> {
    Ok(Row {
        id: text(message, "id")?,
        text: text(message, "text")?,
        created_at: text(message, "created_at")?,
        vector: vector(message)?,
    })
}

/// None for `hello` and `bye`, which call nothing.
fn call(message: &Value) -> Fallible<Option<Call>> {
    let persona = || text(message, "persona");
    let limit = message["limit"].as_u64().unwrap_or(0) as usize;
    Ok(match text(message, "type")?.as_str() {
        "open" => Some(Call::Open(persona()?)),
        "insert" => {
            let rows = message["rows"].as_array().ok_or("rows")?;
            Some(Call::Insert(
                persona()?,
                rows.iter().map(row).collect::<Fallible<_>>()?,
            ))
        }
        "search" if message["path"] == "search_hybrid" => Some(Call::Hybrid(
            text(message, "text")?,
            vector(message)?,
            limit,
        )),
        "search" => Some(Call::Semantic(vector(message)?, limit)),
        "close" => Some(Call::Close),
        _ => None,
    })
}

/// The same calls as `main.rs` makes for these messages, the legs beside the hybrid list included.
fn make(store: &mut Store, call: &Call) -> Fallible<()> {
    match call {
        Call::Open(persona) => store.open(persona)?,
        Call::Insert(persona, rows) => {
            store.expect(persona)?;
            store.begin()?;
            for row in rows {
                store.insert(&row.id, &row.text, &row.created_at, &row.vector)?;
            }
            store.commit()?;
        }
        Call::Hybrid(text, vector, limit) => {
            let pool = limit.saturating_mul(10).clamp(50, 10_000);
            black_box(store.hybrid(text, *limit)?);
            black_box(store.semantic(vector, pool)?);
            black_box(store.bm25(text.trim(), pool)?);
        }
        Call::Semantic(vector, limit) => {
            black_box(store.semantic(vector, *limit)?);
        }
        Call::Close => store.close()?,
    }
    Ok(())
}

fn main() -> Fallible<()> {
    let file = std::env::args().nth(1).ok_or("usage: replay FILE")?;
    let mut calls = Vec::new();
    for line in BufReader::new(File::open(file)?).lines() {
        calls.extend(call(&serde_json::from_str(&line?)?)?);
    }
    let started = Instant::now();
    let mut store = Store::create()?;
    for call in &calls {
        make(&mut store, call)?;
    }
    println!("{:.6}", started.elapsed().as_secs_f64());
    Ok(())
}

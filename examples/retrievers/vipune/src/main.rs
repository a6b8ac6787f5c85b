//! The crate `vipune` behind retrieval-eval's retriever protocol, version 1.
//!
//! Owns the mapping of messages onto vipune's own calls: rows go in through `Database::insert_with_time` with the
//! vectors we are given; `search_hybrid` is `MemoryStore::search_hybrid`, which embeds the query itself; `search` is
//! `Database::search`; `search_bm25` is `Database::search_bm25`. It ranks nothing itself.

mod store;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use std::error::Error;
use std::io::{self, BufRead, Write};
use store::{Hits, Store};

type Fallible<T> = Result<T, Box<dyn Error>>;

fn text_of<'a>(message: &'a Value, key: &str) -> Fallible<&'a str> {
    message[key]
        .as_str()
        .ok_or_else(|| format!("{key}: expected a string").into())
}

/// base64 of little-endian float32.
fn vector_of(message: &Value) -> Fallible<Vec<f32>> {
    let bytes = BASE64_STANDARD.decode(text_of(message, "vector")?)?;
    if bytes.len() % 4 != 0 {
        return Err("vector: expected a multiple of four bytes".into());
    }
    Ok(bytes
        .chunks_exact(4)
        .map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]))
        .collect())
}

fn ids(hits: &Hits) -> Vec<&str> {
    hits.iter().map(|(id, _)| id.as_str()).collect()
}

fn hello(message: &Value) -> Fallible<Value> {
    let versions = message["versions"]
        .as_array()
        .ok_or("versions: expected an array")?;
    if !versions.contains(&json!(1)) {
        return Err("this program speaks version 1 only".into());
    }
    Ok(json!({
        "version": 1,
        "name": "vipune",
        "embedding": {"rows": "given", "queries": "own"},
        "paths": {
            "search_hybrid": {"needs": ["text"]},
            "search": {"needs": ["vector"]},
            "search_bm25": {"needs": ["text"], "may_return_fewer": true},
        },
    }))
}

fn insert(store: &mut Store, message: &Value) -> Fallible<Value> {
    let rows = message["rows"]
        .as_array()
        .ok_or("rows: expected an array")?;
    store.begin()?;
    for row in rows {
        store.insert(
            text_of(row, "id")?,
            text_of(row, "text")?,
            text_of(row, "created_at")?,
            &vector_of(row)?,
        )?;
    }
    store.commit()?;
    Ok(json!({"inserted": rows.len()}))
}

/// The legs need a vector beside the text; without one the hybrid list comes alone.
fn search(store: &mut Store, message: &Value) -> Fallible<Value> {
    let limit = message["limit"]
        .as_u64()
        .ok_or("limit: expected a whole number")? as usize;
    let hits = match text_of(message, "path")? {
        "search_hybrid" => store.hybrid(text_of(message, "text")?, limit)?,
        "search" => store.semantic(&vector_of(message)?, limit)?,
        "search_bm25" => store.bm25(text_of(message, "text")?, limit)?,
        other => return Err(format!("path {other:?} is not one of ours").into()),
    };
    let scores: Vec<f64> = hits.iter().map(|(_, score)| *score).collect();
    let mut answer = json!({"ids": ids(&hits), "scores": scores});
    if message["path"] == "search_hybrid" && message["vector"].is_string() {
        let pool = limit.saturating_mul(10).clamp(50, 10_000);
        let semantic = store.semantic(&vector_of(message)?, pool)?;
        let bm25 = store.bm25(text_of(message, "text")?.trim(), pool)?;
        answer["legs"] = json!({"semantic": ids(&semantic), "bm25": ids(&bm25)});
    }
    Ok(answer)
}

fn answer(store: &mut Store, message: &Value) -> Fallible<Value> {
    let kind = text_of(message, "type")?;
    if kind == "hello" {
        return hello(message);
    }
    let persona = text_of(message, "persona")?;
    if kind == "open" {
        store.open(persona)?;
        return Ok(json!({}));
    }
    store.expect(persona)?;
    match kind {
        "insert" => insert(store, message),
        "search" => search(store, message),
        "close" => {
            store.close()?;
            Ok(json!({}))
        }
        other => Err(format!("message type {other:?} is unknown").into()),
    }
}

fn main() -> Fallible<()> {
    let mut store = Store::create()?;
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        if message["type"] == "bye" {
            break;
        }
        let mut reply = match answer(&mut store, &message) {
            Ok(mut reply) => {
                reply["type"] = message["type"].clone();
                reply
            }
            Err(error) => json!({"type": "error", "message": error.to_string()}),
        };
        reply["seq"] = message["seq"].clone();
        writeln!(out, "{reply}")?;
        out.flush()?;
    }
    Ok(())
}

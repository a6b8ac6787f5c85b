//! One throwaway vipune database that holds one persona at a time.
//!
//! Owns what keeps lists repeatable. vipune breaks fused ties by id and equal cosines by `created_at`, and makes both
//! up itself (a random UUID, the clock); so every row gets the id and the time that the protocol hands over. BM25
//! statistics cover the whole table; so a persona's rows are deleted before the next one's are stored. One
//! `MemoryStore` lives as long as the program, because it loads the embedding model.

use std::error::Error;
use tempfile::TempDir;
use vipune::memory::SearchOptions;
use vipune::{Config, Database, EMBED_MODEL_ID, MAX_INPUT_LENGTH, Memory, MemoryStore};

type Fallible<T> = Result<T, Box<dyn Error>>;

/// Row ids and scores, best first; a larger score is a better match.
pub type Hits = Vec<(String, f64)>;

const PROJECT: &str = "persona";

pub struct Store {
    database: Database,
    memory: MemoryStore,
    persona: Option<String>,
    _folder: TempDir,
}

fn hits(memories: Vec<Memory>, sign: f64) -> Hits {
    memories
        .into_iter()
        .map(|memory| (memory.id, sign * memory.similarity.unwrap_or(0.0)))
        .collect()
}

impl Store {
    pub fn create() -> Fallible<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("memories.db");
        let memory = MemoryStore::new(&path, EMBED_MODEL_ID, Config::default())?;
        let database = Database::open(&path)?;
        // Nothing here has to survive a crash. The update trigger would index a row again when it gets its id.
        database.conn().execute_batch(
            "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; DROP TRIGGER IF EXISTS memories_fts_update;",
        )?;
        Ok(Self {
            database,
            memory,
            persona: None,
            _folder: folder,
        })
    }

    pub fn open(&mut self, persona: &str) -> Fallible<()> {
        if let Some(open) = &self.persona {
            return Err(format!("persona {open:?} is still open").into());
        }
        self.persona = Some(persona.to_owned());
        Ok(())
    }

    pub fn expect(&self, persona: &str) -> Fallible<()> {
        if self.persona.as_deref() != Some(persona) {
            return Err(format!("persona {persona:?} is not open").into());
        }
        Ok(())
    }

    pub fn close(&mut self) -> Fallible<()> {
        self.persona = None;
        if !self.database.conn().is_autocommit() {
            self.database.conn().execute_batch("ROLLBACK")?;
        }
        self.database.conn().execute_batch("DELETE FROM memories")?;
        Ok(())
    }

    pub fn begin(&self) -> Fallible<()> {
        Ok(self.database.conn().execute_batch("BEGIN")?)
    }

    pub fn commit(&self) -> Fallible<()> {
        Ok(self.database.conn().execute_batch("COMMIT")?)
    }

    pub fn insert(&self, id: &str, text: &str, created_at: &str, vector: &[f32]) -> Fallible<()> {
        let given = self.database.insert_with_time(
            PROJECT, text, vector, None, created_at, created_at, "fact", "active",
        )?;
        self.database
            .conn()
            .execute("UPDATE memories SET id = ?1 WHERE id = ?2", [id, &given])?;
        Ok(())
    }

    pub fn hybrid(&mut self, text: &str, limit: usize) -> Fallible<Hits> {
        Ok(hits(
            self.memory
                .search_hybrid(PROJECT, text, limit, 0.0, SearchOptions::default())?,
            1.0,
        ))
    }

    pub fn semantic(&self, vector: &[f32], limit: usize) -> Fallible<Hits> {
        Ok(hits(
            self.database.search(PROJECT, vector, limit, None, None)?,
            1.0,
        ))
    }

    /// SQLite's bm25 is negative and lower is better; the protocol wants the opposite. `Database` itself takes a text
    /// of any length, and minutes for 200 kB; so the bound is the one that `MemoryStore` puts before it.
    pub fn bm25(&self, text: &str, limit: usize) -> Fallible<Hits> {
        if text.len() > MAX_INPUT_LENGTH {
            return Err(format!("text of {} bytes, at most {MAX_INPUT_LENGTH}", text.len()).into());
        }
        Ok(hits(
            self.database
                .search_bm25(text, PROJECT, limit, None, None)?,
            -1.0,
        ))
    }
}

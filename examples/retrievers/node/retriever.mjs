// @ts-check
// A retriever behind the protocol for Node 20 or newer, without dependencies and without a build. The JSDoc types are
// the protocol's own, so `tsc --checkJs` reads this file as TypeScript.

import { createInterface } from "node:readline";

/** @typedef {{ id: string, text: string, created_at: string, vector: string }} Row */
/** @typedef {{ persona: string, path: string, limit: number, text?: string, vector?: string }} Search */
/** @typedef {{ words: Map<string, number>, length: number, vector: Float64Array }} Stored */

/** @type {Map<string, Map<string, Stored>>} row id to row, per persona, in order of insertion */
const personas = new Map();

/** @param {string} text */
const tokens = (text) => text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];

/** @param {string} encoded base64 of little-endian float32 */
function floats(encoded) {
  const bytes = Buffer.from(encoded, "base64");
  return Float64Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readFloatLE(4 * i));
}

/** @param {Row} row @returns {Stored} */
function stored(row) {
  const words = new Map();
  const all = tokens(row.text);
  for (const word of all) words.set(word, (words.get(word) ?? 0) + 1);
  return { words, length: all.length, vector: floats(row.vector) };
}

/**
 * Ids by score, best first; equal scores keep the order of `scored` (Array.prototype.sort is stable).
 * @param {[string, number][]} scored
 */
const ranked = (scored) => scored.sort((a, b) => b[1] - a[1]).map(([id]) => id);

/**
 * Cosine of unit vectors; equal ones newest first.
 * @param {Map<string, Stored>} rows @param {Float64Array} query
 */
function semantic(rows, query) {
  return ranked([...rows].reverse().map(([id, row]) => [id, query.reduce((sum, x, i) => sum + x * row.vector[i], 0)]));
}

/**
 * Okapi BM25 (k1 = 1.2, b = 0.75) over the rows that share a word with the query; equal scores oldest first.
 * @param {Map<string, Stored>} rows @param {string} text
 */
function bm25(rows, text) {
  const mean = [...rows.values()].reduce((sum, row) => sum + row.length, 0) / rows.size || 1;
  /** @type {Map<string, number>} */
  const scores = new Map();
  for (const word of new Set(tokens(text))) {
    const holders = [...rows].filter(([, row]) => row.words.has(word));
    const idf = Math.log(1 + (rows.size - holders.length + 0.5) / (holders.length + 0.5));
    for (const [id, row] of holders) {
      const tf = /** @type {number} */ (row.words.get(word));
      const score = (idf * tf * 2.2) / (tf + 1.2 * (0.25 + (0.75 * row.length) / mean));
      scores.set(id, (scores.get(id) ?? 0) + score);
    }
  }
  return ranked([...rows.keys()].filter((id) => scores.has(id)).map((id) => [id, scores.get(id) ?? 0]));
}

/** @param {Search} request @param {Map<string, Stored>} rows */
function search(request, rows) {
  /** @type {Record<string, string[]>} */
  const legs = {};
  if (request.path !== "search_bm25") legs.semantic = semantic(rows, floats(request.vector ?? ""));
  if (request.path !== "search") legs.bm25 = bm25(rows, request.text ?? "");
  /** @type {Map<string, number>} */
  const fused = new Map();
  for (const leg of Object.values(legs)) {
    leg.forEach((id, i) => fused.set(id, (fused.get(id) ?? 0) + 1 / (26 + i)));
  }
  const order = [...fused].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, request.limit);
  return { ids: order.map(([id]) => id), scores: order.map(([, score]) => score), legs };
}

/** @param {any} request */
function answer(request) {
  if (request.type === "hello") {
    return {
      version: 1,
      name: "okapi and cosine in Node",
      personas: 100,
      paths: {
        search_hybrid: { needs: ["text", "vector"] },
        search: { needs: ["vector"] },
        search_bm25: { needs: ["text"], may_return_fewer: true },
      },
    };
  }
  if (request.type === "open") {
    personas.set(request.persona, new Map());
    return {};
  }
  const rows = personas.get(request.persona);
  if (!rows) throw new Error(`persona ${request.persona} is not open`);
  switch (request.type) {
    case "insert":
      for (const row of request.rows) rows.set(row.id, stored(row));
      return { inserted: request.rows.length };
    case "search":
      return search(request, rows);
    case "close":
      personas.delete(request.persona);
      return {};
    default:
      throw new Error(`message type ${request.type} is unknown`);
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  if (request.type === "bye") break;
  let reply;
  try {
    reply = { type: request.type, ...answer(request) };
  } catch (error) {
    reply = { type: "error", message: String(error) };
  }
  process.stdout.write(`${JSON.stringify({ seq: request.seq, ...reply })}\n`);
}

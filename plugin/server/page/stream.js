// SPDX-License-Identifier: Apache-2.0
// The server's API as this page uses it.

// A failure that the server told, with the sentence of its answer.
export class ServerError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

const headersOf = (key) => ({
  "Content-Type": "application/json",
  ...(key ? { Authorization: `Bearer ${key}` } : {}),
});

async function failureOf(response) {
  const text = await response.text();
  let message = text || response.statusText;
  try {
    message = JSON.parse(text).error.message;
  } catch {
    // not an answer of the API: its text says most
  }
  return new ServerError(response.status, message);
}

// The names of the models that the server has.
export async function listModels(key) {
  const response = await fetch("v1/models", { headers: headersOf(key) });
  if (!response.ok) throw await failureOf(response);
  return (await response.json()).data.map((model) => model.id);
}

// The data of server-sent events, one by one, of a stream of text in pieces of any length.
export async function* eventData(pieces) {
  let held = "";
  for await (const piece of pieces) {
    held += piece;
    const lines = held.split(/\r?\n/);
    held = lines.pop();
    for (const line of lines) {
      if (line.startsWith("data:")) yield line.slice(5).trim();
    }
  }
}

async function* piecesOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// The chunks of a chat completion. `request`: without "stream". The signal's abort ends it with an
// AbortError, and the server drops the text.
export async function* chatChunks(request, key, signal) {
  const response = await fetch("v1/chat/completions", {
    method: "POST",
    headers: headersOf(key),
    body: JSON.stringify({ ...request, stream: true, stream_options: { include_usage: true } }),
    signal,
  });
  if (!response.ok) throw await failureOf(response);
  for await (const data of eventData(piecesOf(response.body))) {
    if (data === "[DONE]") return;
    const chunk = JSON.parse(data);
    if (chunk.error) throw new ServerError(500, chunk.error.message);
    yield chunk;
  }
  throw new ServerError(0, "The connection ended before the answer did.");
}

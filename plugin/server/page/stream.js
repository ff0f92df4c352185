// SPDX-License-Identifier: Apache-2.0
// The functions of the server's API that the page uses.

// An error with the sentence of the server's answer.
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
    // not an error of the API, perhaps a proxy's: show its text
  }
  return new ServerError(response.status, message);
}

// Returns the names of the server's models.
export async function listModels(key) {
  const response = await fetch("v1/models", { headers: headersOf(key) });
  if (!response.ok) throw await failureOf(response);
  return (await response.json()).data.map((model) => model.id);
}

// Yields the data of server-sent events from a stream of text in pieces of any length.
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

// Yields the chunks of a chat completion. `request` has no "stream". Aborting the signal ends it
// with an AbortError, and the server cancels the text.
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

// SPDX-License-Identifier: Apache-2.0
// The page: a conversation, the list of conversations, and settings.
import { chatChunks, listModels, ServerError } from "./stream.js";
import { dropChat, keepChat, keepSettings, listChats, newChat, readSettings } from "./chats.js";
import { markdown } from "./markdown.js";

const $ = (id) => document.getElementById(id);
const [log, input, status, form] = [$("log"), $("input"), $("status"), $("settings")];
const TEXTS = ["system", "thinking", "theme", "key"]; // settings that are no numbers

let chat = newChat();
let settings = readSettings();
let running = null; // the AbortController of the answer that is being read

const say = (text) => { status.textContent = text; };

function button(text, act, title) {
  const b = document.createElement("button");
  b.type = "button";
  b.textContent = text;
  if (title) b.title = title;
  b.addEventListener("click", act);
  return b;
}

// ---- the conversation ---------------------------------------------------------------------

// Keeps the end of the log in view if it was in view before the change.
let follows = true;
const follow = () => { if (follows) log.scrollTop = log.scrollHeight; };
log.addEventListener("scroll", () => { follows = log.scrollHeight - log.scrollTop - log.clientHeight < 40; });
new ResizeObserver(follow).observe(log);

function showText(article, message) {
  const body = article.querySelector(".body");
  const thought = article.querySelector("details");
  const isWaiting = running !== null && message.role !== "user" && message === chat.messages.at(-1);
  if (message.role === "user") body.textContent = message.content;
  else body.replaceChildren(...markdown(message.content));
  body.classList.toggle("waiting", isWaiting);
  thought.hidden = !message.thought;
  thought.querySelector("summary").textContent = isWaiting && !message.content ? "Thinking…" : "Thoughts";
  thought.querySelector("div").textContent = message.thought ?? "";
  article.querySelector(".error").textContent = message.error ?? "";
  article.querySelector(".stats").textContent = message.stats ?? "";
}

function copy(message) {
  navigator.clipboard?.writeText(message.content).then(() => say("Copied."), () => say("The browser did not allow copying."));
}

// Replaces a user's message by an input field; later messages are removed when it is sent.
function edit(article, message) {
  const field = document.createElement("textarea");
  field.value = message.content;
  field.rows = Math.min(12, message.content.split("\n").length + 1);
  field.setAttribute("aria-label", "Edited message");
  const done = () => showChat();
  const send = () => {
    const text = field.value.trim();
    const at = chat.messages.indexOf(message);
    if (!text || running || at < 0) return;
    chat.messages.length = at;
    ask(text);
  };
  field.addEventListener("keydown", (e) => {
    if (e.key === "Escape") { e.stopPropagation(); done(); }
    if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); send(); }
  });
  article.querySelector(".body").replaceChildren(field);
  article.querySelector(".actions").replaceChildren(button("Send", send), button("Cancel", done));
  field.focus();
}

function regenerate(message) {
  const at = chat.messages.indexOf(message);
  if (running || at < 1) return;
  chat.messages.length = at;
  answer();
}

function articleOf(message) {
  const article = document.createElement("article");
  article.className = message.role;
  article.innerHTML = // constant: texts are set by showText
    '<h2 class="hidden"></h2><details><summary>Thoughts</summary><div></div></details>' +
    '<div class="body"></div><div class="error"></div><div class="actions"></div>';
  article.querySelector("h2").textContent = message.role === "user" ? "You" : "Answer";
  const stats = document.createElement("span");
  stats.className = "stats";
  article.querySelector(".actions").append(
    button("Copy", () => copy(message)),
    message.role === "user"
      ? button("Edit", () => { if (!running) edit(article, message); })
      : button("Regenerate", () => regenerate(message)),
    stats,
  );
  showText(article, message);
  return article;
}

function showChat() {
  log.replaceChildren(...chat.messages.map(articleOf));
  follows = true;
  follow();
}

// ---- an answer ------------------------------------------------------------------------------

function requestOf() {
  const request = { messages: [] };
  if ($("model").value) request.model = $("model").value;
  if (settings.system) request.messages.push({ role: "system", content: settings.system });
  for (const { role, content, error } of chat.messages) {
    if (!error || content) request.messages.push({ role, content });
  }
  for (const [name, value] of Object.entries(settings)) {
    if (!TEXTS.includes(name) && value !== "") request[name] = Number(value);
  }
  if (settings.thinking) request.chat_template_kwargs = { enable_thinking: settings.thinking === "on" };
  return request;
}

const SHORTEST = 200; // ms; shorter times say nothing about the server's speed

// "12 tokens, 34.5 tokens/s, first token after 0.21 s; 40 of 52 prompt tokens from the cache"
function statsOf(times, usage, finish) {
  if (!times.first) return "";
  const n = usage?.completion_tokens ?? times.n;
  const parts = [`${n} token${n === 1 ? "" : "s"}`];
  if (n > 1 && times.last - times.first > SHORTEST) {
    parts.push(`${(((n - 1) * 1000) / (times.last - times.first)).toFixed(1)} tokens/s`);
  }
  parts.push(`first token after ${((times.first - times.start) / 1000).toFixed(2)} s`);
  const cached = usage?.prompt_tokens_details?.cached_tokens;
  const more = cached ? `; ${cached} of ${usage.prompt_tokens} prompt tokens from the cache` : "";
  return parts.join(", ") + more + (finish === "length" ? "; cut at the maximum length" : "");
}

function setRunning(controller) {
  running = controller;
  $("send").hidden = controller !== null;
  $("stop").hidden = controller === null;
}

// Paints at most once a frame: a fast model writes more tokens than that.
function painter(article, message) {
  let isDue = false;
  return () => {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => {
      isDue = false;
      showText(article, message);
      follow();
    });
  };
}

async function readAnswer(request, signal, message, times, paint) {
  let usage = null, finish = null;
  try {
    for await (const chunk of chatChunks(request, settings.key, signal)) {
      const choice = chunk.choices?.[0];
      usage = chunk.usage ?? usage;
      finish = choice?.finish_reason ?? finish;
      const { content, reasoning_content: thought } = choice?.delta ?? {};
      if (!content && !thought) continue;
      times.last = performance.now();
      times.first ||= times.last;
      times.n++;
      message.content += content ?? "";
      message.thought += thought ?? "";
      paint();
    }
  } finally {
    message.stats = statsOf(times, usage, finish);
  }
}

async function answer() {
  const message = { role: "assistant", content: "", thought: "" };
  const times = { start: performance.now(), first: 0, last: 0, n: 0 };
  const here = chat, mine = new AbortController();
  const request = requestOf();
  setRunning(mine);
  chat.messages.push(message);
  showChat();
  const article = log.lastElementChild;
  say("");
  try {
    await readAnswer(request, mine.signal, message, times, painter(article, message));
  } catch (e) {
    if (e.name === "AbortError") say("Stopped.");
    else message.error = e instanceof ServerError ? e.message : "The server cannot be reached.";
    if (e.status === 401) toggle("settings", true);
  }
  if (running === mine) setRunning(null);
  showText(article, message);
  follow();
  if (!here.isDropped && !keepChat(here)) say("This browser keeps no more chats: its storage is full or switched off.");
  showList();
}

function ask(text) {
  chat.messages.push({ role: "user", content: text });
  answer();
}

// ---- the list of conversations ----------------------------------------------------------------

function openChat(other) {
  running?.abort();
  setRunning(null);
  chat = other;
  showChat();
  showList();
  if (matchMedia("(max-width: 50rem)").matches) toggle("chats", false);
  input.focus();
}

function rowOf(other) {
  const row = document.createElement("li");
  const open = button(other.title || "Chat", () => openChat(other));
  if (other.id === chat.id) open.setAttribute("aria-current", "true");
  const drop = button("✕", () => {
    dropChat(other.id);
    if (other.id === chat.id) {
      chat.isDropped = true; // so that an answer in progress does not save it again
      openChat(newChat());
    }
    else showList();
  });
  drop.setAttribute("aria-label", `Delete ${other.title || "chat"}`);
  row.append(open, drop);
  return row;
}

function showList() {
  $("chat-list").replaceChildren(...listChats().map(rowOf));
}

// ---- panels and settings ------------------------------------------------------------------------

function toggle(id, isOpen = $(id).hidden) {
  $(id).hidden = !isOpen;
  $(`open-${id}`).setAttribute("aria-expanded", String(isOpen));
  follow();
  if (isOpen) $(id).querySelector("button, input, textarea")?.focus();
  else input.focus();
}

function applySettings() {
  for (const field of form.elements) {
    if (field.name) field.value = settings[field.name] ?? "";
  }
  if (settings.theme) document.documentElement.dataset.theme = settings.theme;
  else delete document.documentElement.dataset.theme;
}

async function showModels() {
  const wanted = $("model").value;
  try {
    const models = await listModels(settings.key);
    $("model").replaceChildren(...models.map((name) => new Option(name, name)));
    if (models.includes(wanted)) $("model").value = wanted;
    say("");
  } catch (e) {
    say(e instanceof ServerError ? e.message : "The server cannot be reached.");
    if (e.status === 401) toggle("settings", true);
  }
}

form.addEventListener("change", (e) => {
  if (!e.target.checkValidity()) return;
  settings = { ...settings, [e.target.name]: e.target.value };
  keepSettings(settings);
  applySettings();
  if (e.target.name === "key") showModels();
});
form.addEventListener("submit", (e) => e.preventDefault());
$("close-settings").addEventListener("click", () => toggle("settings", false));
$("open-settings").addEventListener("click", () => toggle("settings"));
$("open-chats").addEventListener("click", () => toggle("chats"));
$("new-chat").addEventListener("click", () => openChat(newChat()));

// ---- the message ------------------------------------------------------------------------------

function fitInput() {
  input.style.height = "auto";
  input.style.height = `${input.scrollHeight + 2}px`;
}

$("composer").addEventListener("submit", (e) => {
  const text = input.value.trim();
  e.preventDefault();
  if (!text || running) return;
  input.value = "";
  fitInput();
  ask(text);
});
$("stop").addEventListener("click", () => { running?.abort(); input.focus(); });
input.addEventListener("input", fitInput);
input.addEventListener("keydown", (e) => {
  if (e.key === "Enter" && !e.shiftKey && !e.isComposing) {
    e.preventDefault();
    $("composer").requestSubmit();
  }
});

const SHORTCUTS = { KeyN: () => openChat(newChat()), KeyC: () => toggle("chats"), KeyS: () => toggle("settings") };
document.addEventListener("keydown", (e) => {
  if (e.key === "Escape" && running) running.abort();
  else if (e.altKey && !e.ctrlKey && !e.metaKey && SHORTCUTS[e.code]) {
    e.preventDefault();
    SHORTCUTS[e.code]();
  }
});

applySettings();
if (!matchMedia("(max-width: 50rem)").matches) toggle("chats", true);
openChat(listChats()[0] ?? newChat());
showModels();

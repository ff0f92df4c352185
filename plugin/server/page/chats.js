// SPDX-License-Identifier: Apache-2.0
// Stores conversations and settings in the browser. A conversation is
// { id, title, changed, messages: [{ role, content, thought, stats, error }] }.

const CHAT = "xemoe.chat.";
const SETTINGS = "xemoe.settings";

function read(key) {
  try {
    return JSON.parse(localStorage.getItem(key));
  } catch {
    return null; // damaged, or storage is disabled: treated as missing
  }
}

// Returns false if storage is disabled or full.
function write(key, value) {
  try {
    localStorage.setItem(key, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

function idsOfChats() {
  try {
    return Object.keys(localStorage).filter((key) => key.startsWith(CHAT));
  } catch {
    return [];
  }
}

export const newChat = () => ({
  id: `${Date.now().toString(36)}${Math.random().toString(36).slice(2, 8)}`,
  title: "",
  changed: Date.now(),
  messages: [],
});

// Returns all conversations, the latest first.
export function listChats() {
  return idsOfChats()
    .map(read)
    .filter((chat) => chat && Array.isArray(chat.messages))
    .sort((a, b) => b.changed - a.changed);
}

const TITLE = 48; // characters

export function keepChat(chat) {
  const first = chat.messages.find((message) => message.role === "user");
  chat.title = first ? first.content.trim().split("\n")[0].slice(0, TITLE) : "";
  chat.changed = Date.now();
  return chat.messages.length === 0 || write(CHAT + chat.id, chat);
}

export function dropChat(id) {
  localStorage.removeItem(CHAT + id);
}

export const readSettings = () => read(SETTINGS) ?? {};
export const keepSettings = (settings) => write(SETTINGS, settings);

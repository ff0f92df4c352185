// SPDX-License-Identifier: Apache-2.0
// The part of Markdown that models write, as DOM nodes: headings, lists, quotes, tables, code,
// emphasis. Nothing of a text is ever parsed as HTML, and links are shown with their address.

function element(name, ...children) {
  const e = document.createElement(name);
  e.append(...children);
  return e;
}

const INLINE = /(`+)([^`](?:.*?[^`])?)\1(?!`)|\*\*(?=\S)(.+?)\*\*|(?<![\w*])\*(?=\S)([^*]+?)\*(?!\w)|\[([^\]]+)\]\((https?:\/\/[^\s)]+)\)/g;

// characters; a longer line is plain text, because INLINE may scan each character repeatedly
const LONG_LINE = 20000;

function inline(text) {
  if (text.length > LONG_LINE) return [text];
  const nodes = [];
  let at = 0;
  for (const m of text.matchAll(INLINE)) {
    nodes.push(text.slice(at, m.index));
    at = m.index + m[0].length;
    if (m[2] !== undefined) {
      nodes.push(element("code", m[2]));
    } else if (m[3] !== undefined) {
      nodes.push(element("strong", ...inline(m[3])));
    } else if (m[4] !== undefined) {
      nodes.push(element("em", ...inline(m[4])));
    } else {
      const link = element("a", m[5]);
      link.href = m[6];
      link.title = m[6];
      link.rel = "noopener noreferrer";
      link.target = "_blank";
      nodes.push(link);
    }
  }
  nodes.push(text.slice(at));
  return nodes;
}

const cellsOf = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());
const ITEM = /^\s*(?:[-*+]|(\d+)[.)])\s+(.*)$/;
const RULE_OF_TABLE = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;

function table(lines) {
  const row = (line, name) => element("tr", ...cellsOf(line).map((cell) => element(name, ...inline(cell))));
  return element("table", row(lines[0], "th"), ...lines.slice(2).map((line) => row(line, "td")));
}

const DEEPEST = 6; // quotes within quotes

// Each reader reads lines from `at` on and returns [node, next line]; null: it cannot read them.
const BLOCKS = [
  function code(lines, at) {
    const fence = /^\s*(`{3,}|~{3,})/.exec(lines[at]);
    if (!fence) return null;
    let end = at + 1;
    while (end < lines.length && !lines[end].trim().startsWith(fence[1])) end++;
    return [element("pre", element("code", lines.slice(at + 1, end).join("\n"))), end + 1];
  },
  function heading(lines, at) {
    const m = /^#{1,6}\s+(.*?)\s*#*$/.exec(lines[at]);
    return m && [element("h2", ...inline(m[1])), at + 1];
  },
  function tableBlock(lines, at) {
    if (!lines[at].includes("|") || !RULE_OF_TABLE.test(lines[at + 1] ?? "")) return null;
    let end = at + 2;
    while (end < lines.length && lines[end].includes("|")) end++;
    return [table(lines.slice(at, end)), end];
  },
  function quote(lines, at, depth) {
    if (depth === DEEPEST) return null;
    let end = at;
    while (end < lines.length && /^\s*>/.test(lines[end])) end++;
    if (end === at) return null;
    return [element("blockquote", ...blocks(lines.slice(at, end).map((l) => l.replace(/^\s*> ?/, "")), depth + 1)), end];
  },
  function list(lines, at) {
    const first = ITEM.exec(lines[at]);
    if (!first) return null;
    const node = element(first[1] ? "ol" : "ul");
    if (first[1]) node.start = Number(first[1]);
    for (let m; at < lines.length && (m = ITEM.exec(lines[at])); at++) node.append(element("li", ...inline(m[2])));
    return [node, at];
  },
];

const begins = (lines, at, depth) => BLOCKS.some((read) => read(lines, at, depth));

function blocks(lines, depth) {
  const nodes = [];
  for (let at = 0; at < lines.length;) {
    if (!lines[at].trim()) {
      at++;
      continue;
    }
    let found = null;
    for (const read of BLOCKS) if (!found) found = read(lines, at, depth);
    if (!found) {
      let end = at + 1;
      while (end < lines.length && lines[end].trim() && !begins(lines, end, depth)) end++;
      const p = element("p");
      lines.slice(at, end).forEach((line, i) => p.append(...(i ? [element("br")] : []), ...inline(line)));
      found = [p, end];
    }
    nodes.push(found[0]);
    at = found[1];
  }
  return nodes;
}

// Returns the nodes of a text, which may still be incomplete.
export function markdown(text) {
  return blocks(text.split("\n"), 0);
}

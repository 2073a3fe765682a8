"use strict";
// Shows openapi.json. Everything from the document is written as text, never as markup.

function element(tag, text, ...children) {
  const e = document.createElement(tag);
  if (text) e.textContent = text;
  e.append(...children);
  return e;
}

function lookUp(doc, schema) {
  let s = schema;
  for (let i = 0; s && s.$ref && i < 8; i++) {
    s = s.$ref.split("/").slice(1).reduce((o, k) => o && o[k], doc);
  }
  return s || {};
}

function typeName(doc, schema) {
  if (!schema) return "";
  const choices = schema.oneOf || schema.anyOf;
  if (choices) return choices.map((s) => typeName(doc, s)).join(" or ");
  if (schema.$ref) return schema.$ref.split("/").pop();
  const type = Array.isArray(schema.type) ? schema.type.join(" or ") : schema.type || "any";
  if (schema.items) return "array of " + typeName(doc, schema.items);
  return schema.format ? type + " (" + schema.format + ")" : type;
}

function fields(doc, schema) {
  const table = element("table");
  const s = lookUp(doc, schema);
  for (const [name, property] of Object.entries(s.properties || {})) {
    const note = [property.description, property.enum && property.enum.join(", ")].filter(Boolean).join(" – ");
    const row = element("tr", "", element("td", "", element("code", name)), element("td", typeName(doc, property)), element("td", note));
    if ((s.required || []).includes(name)) row.firstChild.append(" *");
    table.append(row);
  }
  return table;
}

function content(doc, label, map) {
  const parts = [];
  for (const [type, media] of Object.entries(map || {})) {
    parts.push(element("h4", label + " " + type + ": " + typeName(doc, media.schema)));
    for (const s of (media.schema && (media.schema.oneOf || media.schema.anyOf)) || [media.schema]) parts.push(fields(doc, s));
  }
  return parts;
}

function operation(doc, path, method, op) {
  const name = element("span", method.toUpperCase());
  name.className = "method";
  const what = element("span", "  " + (op.summary || ""));
  what.className = "what";
  const details = element("details", "", element("summary", "", name, path, what));
  if (op.description) details.append(element("p", op.description));
  if (op.parameters && op.parameters.length) {
    const table = element("table");
    for (const p of op.parameters) {
      table.append(element("tr", "", element("td", "", element("code", p.name)), element("td", p.in), element("td", p.description || "")));
    }
    details.append(element("h4", "Parameters"), table);
  }
  if (op.requestBody) details.append(...content(doc, "Body", op.requestBody.content));
  for (const [status, response] of Object.entries(op.responses || {})) {
    details.append(element("h4", status + " " + (response.description || "")));
    details.append(...content(doc, "Answer", response.content));
  }
  details.dataset.search = (path + " " + method + " " + (op.summary || "")).toLowerCase();
  return details;
}

async function show() {
  const answer = await fetch("openapi.json");
  const doc = await answer.json();
  document.getElementById("about").textContent = doc.info.description || "";
  const groups = new Map();
  for (const [path, item] of Object.entries(doc.paths)) {
    for (const [method, op] of Object.entries(item)) {
      const tag = (op.tags && op.tags[0]) || "other";
      if (!groups.has(tag)) groups.set(tag, []);
      groups.get(tag).push(operation(doc, path, method, op));
    }
  }
  const routes = document.getElementById("routes");
  routes.replaceChildren();
  for (const [tag, operations] of groups) routes.append(element("section", "", element("h2", tag), ...operations));
  document.getElementById("filter").addEventListener("input", (event) => {
    const wanted = event.target.value.toLowerCase();
    for (const d of routes.querySelectorAll("details")) d.hidden = !d.dataset.search.includes(wanted);
  });
}

show().catch((err) => {
  document.getElementById("routes").replaceChildren(element("p", "The document could not be loaded: " + err));
});

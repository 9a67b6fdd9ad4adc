// Writes a request as code: curl, JavaScript, PHP and Python, with nothing to install. Credentials
// are in the environment variables KEY, SECRET and TOKEN. No DOM, so that Node runs it.

/** Each language: its name, and a function that writes a request with an absolute `url`. */
export const LANGUAGES = { curl, JavaScript: javascript, PHP: php, Python: python };

/** The commands that set the variables of the samples, in bash, zsh and fish. */
export function variables({ key, secret, token }) {
  const set = Object.entries({ KEY: key, SECRET: secret, TOKEN: token }).filter(([, value]) => value);
  return set.map(([name, value]) => `export ${name}=${shell(value)}`).join("\n");
}

function curl({ method, url, headers, auth, body }) {
  const parts = ["curl"];
  const implied = body === null ? "GET" : "POST";
  if (method !== implied) parts[0] += ` -X ${method}`;
  parts[0] += ` ${shell(url)}`;
  if (auth === "token") parts.push('-H "Authorization: Bearer $TOKEN"');
  if (auth === "credentials") parts.push('-u "$KEY:$SECRET"');
  for (const [name, value] of Object.entries(headers)) parts.push(`-H ${shell(`${name}: ${value}`)}`);
  if (body !== null) parts.push(`--data-raw ${shell(body)}`);
  return parts.join(" \\\n  ");
}

/** Quotes a text for bash, zsh and fish. Quotes and backslashes are outside of the single quotes: within
 * them, fish interprets backslashes. */
function shell(text) {
  return `'${text.replaceAll(/['\\]/g, (found) => `'\\${found}'`)}'`;
}

function javascript({ method, url, headers, auth, body }) {
  const lines = [`const response = await fetch(${JSON.stringify(url)}, {`];
  if (method !== "GET") lines.push(`  method: "${method}",`);
  const fields = Object.entries(headers).map(([name, value]) => `    ${JSON.stringify(name)}: ${JSON.stringify(value)},`);
  if (auth === "token") fields.unshift("    Authorization: `Bearer ${process.env.TOKEN}`,");
  if (auth === "credentials") {
    fields.unshift("    Authorization: `Basic ${btoa(`${process.env.KEY}:${process.env.SECRET}`)}`,");
  }
  if (fields.length) lines.push("  headers: {", ...fields, "  },");
  if (body !== null) {
    const value = parsed(body);
    const json = value === undefined ? JSON.stringify(body) : `JSON.stringify(${JSON.stringify(value, null, 2)})`;
    lines.push(`  body: ${indented(json)},`);
  }
  lines.push("});", "console.log(response.status, await response.text());");
  return lines.join("\n");
}

function php({ method, url, headers, auth, body }) {
  const fields = Object.entries(headers).map(([name, value]) => phpValue(`${name}: ${value}`));
  if (auth === "token") fields.unshift("'Authorization: Bearer ' . getenv('TOKEN')");
  if (auth === "credentials") {
    fields.unshift("'Authorization: Basic ' . base64_encode(getenv('KEY') . ':' . getenv('SECRET'))");
  }
  const options = [`'method' => '${method}',`];
  if (fields.length) options.push("'header' => [", ...fields.map((field) => `    ${field},`), "],");
  if (body !== null) {
    const value = parsed(body);
    const content = value === undefined ? phpValue(body) : `json_encode(${phpValue(value)})`;
    options.push(...`'content' => ${content},`.split("\n"));
  }
  options.push("'ignore_errors' => true,");
  return [
    "<?php",
    "$context = stream_context_create(['http' => [",
    ...options.map((line) => `    ${line}`),
    "]]);",
    `$body = file_get_contents(${phpValue(url)}, false, $context);`,
    "echo $http_response_header[0], \"\\n\", $body, \"\\n\";",
  ].join("\n");
}

function phpString(text) {
  if (!/[\n\r\t]/.test(text)) return `'${text.replaceAll(/['\\]/g, "\\$&")}'`;
  const escapes = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };
  return `"${text.replaceAll(/["\\$]/g, "\\$&").replaceAll(/[\n\r\t]/g, (found) => escapes[found])}"`;
}

function phpValue(value) {
  if (typeof value === "string") return phpString(value);
  if (value === null || typeof value !== "object") return String(value);
  const isList = Array.isArray(value);
  const items = Object.entries(value).map(([key, item]) => {
    const written = phpValue(item).replaceAll("\n", "\n    ");
    return `    ${isList ? "" : `${phpValue(key)} => `}${written},\n`;
  });
  if (items.length === 0) return isList ? "[]" : "new stdClass()";
  return `[\n${items.join("")}]`;
}

function python({ method, url, headers, auth, body }) {
  const value = body === null ? undefined : parsed(body);
  const imports = ["os", "urllib.error", "urllib.request"];
  if (value !== undefined) imports.unshift("json");
  if (auth === "credentials") imports.unshift("base64");
  if (auth === null) imports.splice(imports.indexOf("os"), 1);
  const lines = [`import ${imports.join(", ")}`, ""];
  const fields = Object.entries(headers).map(([name, text]) => `${JSON.stringify(name)}: ${JSON.stringify(text)},`);
  if (auth === "token") fields.unshift('"Authorization": f"Bearer {os.environ[\'TOKEN\']}",');
  if (auth === "credentials") {
    lines.push("credentials = f\"{os.environ['KEY']}:{os.environ['SECRET']}\".encode()");
    fields.unshift('"Authorization": f"Basic {base64.b64encode(credentials).decode()}",');
  }
  lines.push("request = urllib.request.Request(", `    ${JSON.stringify(url)},`, `    method="${method}",`);
  if (fields.length) lines.push("    headers={", ...fields.map((field) => `        ${field}`), "    },");
  if (body !== null) {
    const data = value === undefined ? JSON.stringify(body) : `json.dumps(${pythonValue(value)})`;
    lines.push(`    data=${data.replaceAll("\n", "\n    ")}.encode(),`);
  }
  lines.push(
    ")",
    "try:",
    "    response = urllib.request.urlopen(request)",
    "except urllib.error.HTTPError as error:",
    "    response = error",
    "print(response.status, response.read().decode())",
  );
  return lines.join("\n");
}

function pythonValue(value) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  const items = Object.entries(value).map(([key, item]) => {
    const written = pythonValue(item).replaceAll("\n", "\n    ");
    return `    ${Array.isArray(value) ? "" : `${JSON.stringify(key)}: `}${written},\n`;
  });
  return items.length === 0 ? open + close : `${open}\n${items.join("")}${close}`;
}

/** The object or array in a JSON body; undefined for other bodies, which are written as text. */
function parsed(body) {
  try {
    const value = JSON.parse(body);
    return value !== null && typeof value === "object" ? value : undefined;
  } catch {
    return undefined;
  }
}

function indented(text) {
  return text.replaceAll("\n", "\n  ");
}

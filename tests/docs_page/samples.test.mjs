// Runs the code that the page shows, and compares what arrives with the request that it stands for.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { promisify } from "node:util";

import { LANGUAGES, variables } from "../../rest-gateway/src/resources/docs_page/samples.js";
import { build } from "../../rest-gateway/src/resources/docs_page/request.js";

const run = promisify(execFile);

const RUNNERS = {
  curl: (code) => ["sh", ["-c", code]],
  JavaScript: (code) => ["node", ["--input-type=module", "-e", code]],
  PHP: (code) => ["php", ["-r", code.replace("<?php", "")]],
  Python: (code) => ["python3", ["-c", code]],
};

/** Quotes, backslashes, variables, line breaks and characters beyond ASCII and the BMP. */
const NASTY = "it's \"so\" $HOME \\ `id` %PATH%\nl'été 🚲\t{}";

let server, url, received;

before(async () => {
  server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const { authorization, accept, "content-type": type, "x-nasty": nasty } = request.headers;
    const body = Buffer.concat(chunks).toString();
    received = { method: request.method, path: request.url, authorization, accept, type, nasty, body };
    response.writeHead(201).end("created");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${server.address().port}`;
});
after(() => server.close());

async function execute(language, { path, ...request }) {
  received = null;
  const code = LANGUAGES[language]({ ...request, url: url + path });
  const [program, args] = RUNNERS[language](code);
  const env = { ...process.env, TOKEN: "a.b-c", KEY: "the-key", SECRET: "the_secret" };
  const { stdout } = await run(program, args, { env, timeout: 30_000 });
  assert.match(stdout, /created/, code);
  return received;
}

for (const language of Object.keys(LANGUAGES)) {
  test(`${language}: a body of JSON arrives with the token`, async () => {
    const body = { text: NASTY, empty: {}, list: [1.5, true, null, []], "clé": { nested: "'" } };
    const operation = { method: "post", path: "/api/x/{id}", accept: "application/ld+json", auth: "token", mediaType: "application/ld+json" };
    const values = [
      { parameter: { in: "path", name: "id" }, value: "a/b c" },
      { parameter: { in: "query", name: "createdAt[after]" }, value: "+2h & l'été" },
      { parameter: { in: "query", name: "absent" }, value: "" },
      { parameter: { in: "query", name: "state" }, value: "failed" },
      { parameter: { in: "query", name: "state" }, value: "exhausted" },
      { parameter: { in: "header", name: "X-Nasty" }, value: "it's \"so\" $HOME \\" },
    ];
    const arrived = await execute(language, build(operation, values, JSON.stringify(body)));

    assert.deepEqual(JSON.parse(arrived.body), body);
    assert.equal(arrived.method, "POST");
    assert.equal(arrived.path, "/api/x/a%2Fb%20c?createdAt%5Bafter%5D=%2B2h+%26+l%27%C3%A9t%C3%A9&state=failed&state=exhausted");
    assert.equal(arrived.authorization, "Bearer a.b-c");
    assert.equal(arrived.type, "application/ld+json");
    assert.equal(arrived.nasty, "it's \"so\" $HOME \\");
  });

  test(`${language}: a request for a token sends key and secret`, async () => {
    const form = "application/x-www-form-urlencoded";
    const operation = { method: "post", path: "/oauth2/token", accept: "application/json", auth: "credentials", mediaType: form };
    const arrived = await execute(language, build(operation, [], "grant_type=client_credentials&scope=a+b"));

    assert.equal(arrived.authorization, `Basic ${btoa("the-key:the_secret")}`);
    assert.equal(arrived.body, "grant_type=client_credentials&scope=a+b");
    assert.equal(arrived.type, form);
    assert.equal(arrived.accept, "application/json");
  });

  test(`${language}: a body that is not JSON arrives unchanged`, async () => {
    const operation = { method: "post", path: "/", accept: "application/ld+json", auth: null, mediaType: "application/json" };
    const arrived = await execute(language, build(operation, [], NASTY));

    assert.equal(arrived.body, NASTY);
    assert.equal(arrived.authorization, undefined);
  });

  for (const method of ["GET", "PUT", "DELETE"]) {
    test(`${language}: ${method} without a body`, async () => {
      const operation = { method, path: "/api/x", accept: "application/ld+json", auth: "token" };
      const arrived = await execute(language, build(operation, [], null));

      assert.deepEqual([arrived.method, arrived.path, arrived.body], [method, "/api/x", ""]);
    });
  }
}

test("the shell variables hold what was typed", async () => {
  const commands = variables({ key: "k'$x", secret: NASTY, token: "" });
  const { stdout } = await run("sh", ["-c", `${commands}\nprintf '%s|%s|%s' "$KEY" "$SECRET" "\${TOKEN-unset}"`], {
    env: { PATH: process.env.PATH },
  });
  assert.equal(stdout, `k'$x|${NASTY}|unset`);
});

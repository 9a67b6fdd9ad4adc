// Reads and uses the documentation page in Chromium: `node docs_page.mjs CHROMIUM BASE KEY SECRET`.

import assert from "node:assert/strict";
import { chromium } from "playwright-core";

const [executablePath, base, key, secret] = process.argv.slice(2);
// `--no-sandbox`: CI runs as root.
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const context = await browser.newContext();
context.setDefaultTimeout(20_000);
const page = await context.newPage();
const problems = [];
page.on("pageerror", (error) => problems.push(error.message));
page.on("console", (message) => {
  // Chromium reports each response with 401.
  if (message.type() === "error" && !message.text().includes("401")) problems.push(message.text());
});
const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);

async function readsWithoutScripts() {
  const withoutScripts = await browser.newContext({ javaScriptEnabled: false });
  const plain = await withoutScripts.newPage();
  await plain.goto(`${base}/api/docs`);
  await plain.getByRole("heading", { name: "Deliveries", exact: true }).waitFor();
  await plain.locator("#createDelivery summary").click();
  await plain.getByText("The dropoff requires an address and a time").waitFor();
  await withoutScripts.close();
}

async function showsTablesAndLinksOfWebhooks() {
  await page.goto(`${base}/api/docs#webhook/delivery.completed`);
  const event = page.locator("[id='webhook/delivery.completed']");
  await event.getByRole("cell", { name: "webhook-signature", exact: true }).waitFor();
  await event.getByRole("link", { name: "Standard Webhooks" }).waitFor();
  await event.locator(".token-name", { hasText: "event" }).first().waitFor();
}

async function findsCodes() {
  for (const [keys, code] of [["/", "too_long"], ["Control+k", "duplicate_webhook"]]) {
    await page.locator("body").click({ position: { x: 1, y: 1 } });
    await page.keyboard.press(keys);
    await page.keyboard.type(code);
    const found = page.locator("#results").getByRole("link", { name: code });
    assert.equal(await found.first().getAttribute("href"), `../errors/${code}`);
    await page.locator("#search").fill("");
  }
}

async function keepsTheToken() {
  await page.goto(`${base}/api/docs#getMe`);
  const operation = page.locator("#getMe");
  const send = () => operation.getByRole("button", { name: "Send" }).click();
  await send();
  await operation.getByRole("link", { name: "Get an access token" }).click();
  await page.waitForFunction(() => document.activeElement.id === "key");
  await page.keyboard.type(key);
  await page.locator("#secret").fill(secret);
  await page.getByRole("button", { name: "Get an access token" }).click();
  await page.getByText("Authorised for deliveries tasks").waitFor();

  await page.goto(`${base}/api/docs#getMe`);
  await page.reload();
  await page.getByText("Authorised for deliveries tasks").waitFor();
  await send();
  await operation.getByText("200", { exact: true }).first().waitFor();
  const store = operation.locator(".token-string a").filter({ hasText: "/api/stores/" });
  await store.click();
  await page.locator("#getStore[open]").waitFor();
}

async function keepsTheTheme() {
  const light = await background();
  await page.locator("#theme").selectOption("dark");
  const dark = await background();
  assert.notEqual(dark, light);
  await page.goto(`${base}/errors/too_long`);
  assert.equal(await background(), dark);
}

async function showsExamplesInTabs() {
  await page.goto(`${base}/api/docs/shop`);
  for (const [language, text] of [["JavaScript", "node:crypto"], ["PHP", "<?php"], ["Python", "urllib"]]) {
    await page.locator(".tabs").getByText(language, { exact: true }).click();
    await page.locator(".languages code", { hasText: text }).waitFor();
  }
  assert.ok((await page.locator(".languages .token-keyword").count()) > 5);
}

/** Long lines scroll in their own block: no page is wider than the window, not even than that of a telephone. */
async function scrollsCode() {
  const { width, height } = page.viewportSize();
  await page.setViewportSize({ width: 360, height });
  for (const path of ["/webhooks", "/internal-service", "/shop", "#createDelivery"]) {
    await page.goto(`${base}/api/docs${path}`);
    await page.locator("main .code pre:visible").first().waitFor();
    const found = await page.evaluate(() => {
      const root = document.documentElement;
      const blocks = [...document.querySelectorAll("main pre")].filter((block) => block.checkVisibility());
      const scrolled = blocks.filter((block) => {
        block.scrollLeft = 1;
        return block.scrollWidth > block.clientWidth && block.scrollLeft === 1;
      });
      const overflowing = blocks.filter((block) => block.getBoundingClientRect().right > root.clientWidth);
      return { width: root.scrollWidth, hasScrolled: scrolled.length > 0, overflowing: overflowing.length };
    });
    assert.deepEqual(found, { width: 360, hasScrolled: true, overflowing: 0 }, path);
  }
  await page.setViewportSize({ width, height });
}

const checks = [
  readsWithoutScripts, showsTablesAndLinksOfWebhooks, findsCodes, keepsTheToken, keepsTheTheme, showsExamplesInTabs,
  scrollsCode,
];
try {
  for (const check of checks) await check();
  assert.deepEqual(problems, []);
  console.log(`the documentation page passes ${checks.length} checks in Chromium`);
} finally {
  await browser.close();
}

// The form that requests an access token.

import { code, element } from "./dom.js";
import { authorise, credentials, session } from "./client.js";
import { variables } from "./samples.js";

export function authoriseForm() {
  const [form, status, shell] = ["authorise", "authorised", "shell"].map((id) => document.getElementById(id));
  const value = (name) => form.elements[name].value.trim();
  if (session.authorised) status.textContent = session.authorised;
  // Requests for tokens send what is typed, also before the form is submitted.
  form.addEventListener("input", () => Object.assign(credentials, { key: value("key"), secret: value("secret") }));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    status.className = "";
    status.textContent = "Sending…";
    try {
      await authorise(value("key"), value("secret"), value("scope"));
      status.textContent = session.authorised;
      shell.replaceChildren(
        element("summary", {}, "Use the samples in a terminal"),
        element("p", { className: "hint" }, "These commands set what the samples read. They contain your secret."),
        code(variables(credentials), "Shell variables", "bash"),
      );
      shell.hidden = false;
    } catch (error) {
      status.className = "failed";
      status.textContent = `Not authorised: ${error.message}`;
    }
  });
}

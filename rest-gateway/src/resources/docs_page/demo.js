// On the demo: completes a delivery in place of its courier.

import { element } from "./dom.js";
import { send } from "./client.js";

const IS_DEMO = document.documentElement.dataset.demo !== undefined;

/** A button below a response that is one stored delivery; nothing below any other. */
export function completeButton({ text }) {
  if (!IS_DEMO) return [];
  let delivery = {};
  try {
    delivery = JSON.parse(text);
  } catch {
    return [];
  }
  if (!delivery || delivery["@context"] !== "/api/contexts/Delivery" || !delivery.id) return [];
  const button = element("button", { type: "button" }, "Complete this delivery");
  const status = element("span", { role: "status", className: "hint" });
  button.addEventListener("click", async () => {
    const path = `/api/demo/deliveries/${delivery.id}/complete`;
    try {
      const response = await send({ method: "POST", path, headers: {}, auth: "token", body: null });
      const completed = JSON.parse(response.text);
      status.textContent =
        response.status === 200
          ? `Pickup and dropoff are ${completed.dropoff.status}. Webhooks of delivery.completed are notified.`
          : completed.detail;
    } catch (error) {
      status.textContent = `No response: ${error.message}`;
    }
  });
  const explanation = "The demo plays the courier. On a real platform, couriers complete the tasks.";
  return [
    element("p", { className: "actions" }, button, status),
    element("p", { className: "hint" }, explanation),
  ];
}

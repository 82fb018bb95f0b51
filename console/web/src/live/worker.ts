import { Hub, type HubRequest } from "./hub";

// The shared worker: one hub for all tabs of a browser.
const hub = new Hub();
// A tab in the background may say only once a minute that it is there.
const silence = 200_000;

addEventListener("connect", (event) => {
  const port = (event as MessageEvent).ports[0];
  if (!port) return;
  port.addEventListener("message", ({ data }: MessageEvent<HubRequest>) => hub.handle(port, data));
  port.start();
});
setInterval(() => hub.sweep(silence), 60_000);

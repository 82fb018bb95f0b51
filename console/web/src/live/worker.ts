import { Hub, type HubRequest } from "./hub";

// The shared worker runs one hub for all tabs.
const hub = new Hub();
// Background tabs may send their keep-alive only once a minute.
const silence = 200_000;

addEventListener("connect", (event) => {
  const port = (event as MessageEvent).ports[0];
  if (!port) return;
  port.addEventListener("message", ({ data }: MessageEvent<HubRequest>) => hub.handle(port, data));
  port.start();
});
setInterval(() => hub.sweep(silence), 60_000);

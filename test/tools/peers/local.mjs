// Keeps a peer on this machine: whatever it listens on, it listens on loopback.
import net from "node:net";

const listen = net.Server.prototype.listen;

net.Server.prototype.listen = function (...args) {
  if (typeof args[0] === "object" && args[0] !== null && "port" in args[0]) {
    args[0] = { ...args[0], host: "127.0.0.1" };
  } else if (/^\d+$/.test(String(args[0]))) {
    const rest = args.slice(1).filter((a) => typeof a === "function");
    args = [{ port: Number(args[0]), host: "127.0.0.1" }, ...rest];
  }
  this.once("listening", () => process.stderr.write(`listening on ${this.address().port}\n`));
  return listen.apply(this, args);
};

import { useRef, type ReactNode } from "react";
import { announce } from "../ui/announce";
import { record, text } from "../ladder/events";
import { useCapabilities } from "../ladder/ui/context";
import { copyText } from "../ui/CopyButton";
import { asCurl, asGrpcurl, asWaybill, type HostRequest } from "./requests";
import { Name } from "../ui/Text";
import "./copyas.css";

/** Copies a page's request as a command. */
export function CopyAs({ request, label = "Copy as" }: { request: HostRequest; label?: string }): ReactNode {
  const grpc = record(useCapabilities().grpc);
  const box = useRef<HTMLDetailsElement>(null);
  const address = text(grpc.endpoint);
  const ways = [
    ["curl", asCurl(request)],
    ["waybill", asWaybill(request)],
    ["grpcurl", address === undefined ? undefined : asGrpcurl(request, address)],
  ] as const;
  return (
    // Escape closes the menu from any focused element inside.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions
    <details
      className="copyas"
      ref={box}
      onKeyDown={(e) => {
        if (e.key !== "Escape" || !box.current) return;
        box.current.open = false;
        box.current.querySelector("summary")?.focus();
      }}
    >
      <summary className="button">{label}</summary>
      <ul>
        {ways.map(([name, command]) => command !== undefined && (
          <li key={name}>
            <button
              type="button"
              className="quiet"
              onClick={() => {
                void copyText(command).then((ok) => announce(ok ? `Copied the ${name} command` : "The browser blocked copying"));
                if (box.current) box.current.open = false;
              }}
            >
              {name}
            </button>
            <code><Name text={command} /></code>
          </li>
        ))}
      </ul>
    </details>
  );
}

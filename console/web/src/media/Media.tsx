import { useEffect, useRef, type ReactNode, type RefObject } from "react";
import type { Json } from "../api/json";
import type { Rendering } from "../ladder/model";
import { Text } from "../ui/Text";
import { assetOf, bytesOf, inBytes, isPicture, isSound, type Asset } from "./asset";
import "./media.css";

type Form = "image" | "audio" | "file";

/** An image, sound or file of a model. Content that the host does not serve is named but not loaded. */
export function Media({ form, payload, rendering }: { form: Form; payload: Json | undefined; rendering?: Rendering | undefined }): ReactNode {
  const asset = assetOf(payload, rendering, location.origin);
  if ("foreign" in asset.source) {
    return (
      <p className="media-foreign">
        <span className="dim">{form} at another address, not loaded:</span> <Text text={asset.source.foreign} />
      </p>
    );
  }
  if ("missing" in asset.source) return <p className="dim">The {form} has neither bytes nor an address.</p>;
  if (form === "image" && isPicture(asset.mimeType)) return <Picture asset={asset} />;
  if (form === "audio" && isSound(asset.mimeType)) return <Sound asset={asset} />;
  return <File asset={asset} />;
}

function Picture({ asset }: { asset: Asset }): ReactNode {
  const element = useBytes<HTMLImageElement>("src", asset);
  const description = asset.alt ?? "image, no description from the model";
  return (
    <figure className="media">
      <img ref={element} alt={description} />
      <figcaption className={asset.alt === undefined && asset.title === undefined ? "dim" : undefined}>
        <Title asset={asset} />
        <Text text={description} /> <Measures asset={asset} />
      </figcaption>
    </figure>
  );
}

function Sound({ asset }: { asset: Asset }): ReactNode {
  const element = useBytes<HTMLAudioElement>("src", asset);
  const description = asset.alt ?? "sound, no description from the model";
  return (
    <figure className="media">
      {/* Model audio has no captions; its description is shown next to it. */}
      {/* oxlint-disable-next-line jsx-a11y/media-has-caption */}
      <audio ref={element} controls preload="metadata" aria-label={asset.title ?? description} />
      <figcaption>
        <Title asset={asset} />
        <Text text={description} /> <Measures asset={asset} />
      </figcaption>
    </figure>
  );
}

function File({ asset }: { asset: Asset }): ReactNode {
  const element = useBytes<HTMLAnchorElement>("href", asset);
  const name = asset.name ?? "file without a name";
  return (
    <p className="media-file">
      {/* href is set when the bytes are available. */}
      {/* oxlint-disable-next-line jsx-a11y/anchor-is-valid */}
      <a ref={element} download={asset.name ?? "file"}>
        {name}
      </a>{" "}
      <Measures asset={asset} typed />
      {asset.title !== undefined && asset.title !== name && (
        <>
          <br />
          <Title asset={asset} />
        </>
      )}
      {asset.alt && (
        <>
          <br />
          <Text text={asset.alt} />
        </>
      )}
    </p>
  );
}

/** The title that the model gave its image or sound. */
function Title({ asset }: { asset: Asset }): ReactNode {
  if (asset.title === undefined) return null;
  return (
    <strong className="media-title">
      <Text text={asset.title} />
    </strong>
  );
}

function Measures({ asset, typed }: { asset: Asset; typed?: boolean }): ReactNode {
  const parts = [
    typed ? (asset.mimeType ?? "unknown type") : undefined,
    asset.size === undefined ? undefined : inBytes(asset.size),
    asset.seconds === undefined ? undefined : `${asset.seconds} s`,
  ].filter((p) => p !== undefined);
  return <span className="dim small">{parts.join(" · ")}</span>;
}

/** Sets an element's source: the host's URL, or a blob URL for inline bytes. */
function useBytes<E extends HTMLElement>(attribute: "src" | "href", { source, mimeType }: Asset): RefObject<E | null> {
  const element = useRef<E>(null);
  const inline = "bytes" in source ? source.bytes : undefined;
  const served = "load" in source ? source.load : undefined;
  useEffect(() => {
    const e = element.current;
    if (served !== undefined) e?.setAttribute(attribute, served);
    const bytes = inline === undefined ? undefined : bytesOf(inline);
    if (!bytes) return;
    const url = URL.createObjectURL(new Blob([bytes], { type: isPicture(mimeType) || isSound(mimeType) ? (mimeType ?? "") : "application/octet-stream" }));
    e?.setAttribute(attribute, url);
    return () => URL.revokeObjectURL(url);
  }, [attribute, inline, served, mimeType]);
  return element;
}

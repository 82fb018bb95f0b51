import type { Element, Nodes, Root } from "hast";
import type { ComponentProps, ReactNode } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import { Text } from "../ui/Text";
import "./markdown.css";

/** Renders model prose. HTML stays text. Links and images are not loaded; their addresses are shown. */
export default function Markdown({ text }: { text: string }): ReactNode {
  return (
    <div className="markdown" dir="auto">
      <ReactMarkdown components={components} rehypePlugins={[asTexts]} urlTransform={(url) => url}>
        {text}
      </ReactMarkdown>
    </div>
  );
}

// All text, including HTML, goes through Text, which shows hidden characters.
function asTexts() {
  return (tree: Root): void => wrap(tree);
}

function wrap(node: Nodes): void {
  if (!("children" in node)) return;
  node.children = node.children.map((child) => {
    if (child.type === "text" && child.value.trim() === "") return child; // whitespace between list items
    if (child.type === "text" || child.type === "raw") return { type: "element", tagName: "samp", properties: {}, children: [{ type: "text", value: child.value }] } satisfies Element;
    wrap(child);
    return child;
  }) as typeof node.children;
}

function Address({ of, children }: { of: string | undefined; children?: ReactNode }): ReactNode {
  return (
    <>
      {children} {of && <code className="address">{of}</code>}
    </>
  );
}

// Model headings must not appear as headings of the page.
const Heading = ({ children }: { children?: ReactNode }): ReactNode => (
  <p>
    <strong>{children}</strong>
  </p>
);

const components: Components = {
  samp: ({ children }: ComponentProps<"samp">) => <Text text={typeof children === "string" ? children : ""} />,
  a: ({ href, children }) => <Address of={href}>{children}</Address>,
  img: ({ src, alt }) => <Address of={typeof src === "string" ? src : undefined}>{alt ? <Text text={`image: ${alt}`} /> : "image, no description from the model"}</Address>,
  h1: Heading,
  h2: Heading,
  h3: Heading,
  h4: Heading,
  h5: Heading,
  h6: Heading,
};

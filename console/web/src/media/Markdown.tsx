import type { Element, Nodes, Root } from "hast";
import type { ComponentProps, ReactNode } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import { Text } from "../ui/Text";
import "./markdown.css";

/** Prose of a model as it meant it. Markup of HTML stays text, no link leads anywhere, and no image is asked for: their addresses are told. */
export default function Markdown({ text }: { text: string }): ReactNode {
  return (
    <div className="markdown" dir="auto">
      <ReactMarkdown components={components} rehypePlugins={[asTexts]} urlTransform={(url) => url}>
        {text}
      </ReactMarkdown>
    </div>
  );
}

// Every text goes through Text, which shows what one would not see; so does HTML, which is a text here.
function asTexts() {
  return (tree: Root): void => wrap(tree);
}

function wrap(node: Nodes): void {
  if (!("children" in node)) return;
  node.children = node.children.map((child) => {
    if (child.type === "text" && child.value.trim() === "") return child; // between the items of a list stands nothing
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

// The page's own headings are not for a model to add to.
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

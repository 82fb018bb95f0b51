import type { ReactNode } from "react";
import { Link, useLocation } from "wouter";
import "../capabilities/capabilities.css";
import "./system.css";

const tabs = [
  { path: "/system", name: "Status" },
  { path: "/system/webhooks", name: "Webhooks" },
  { path: "/system/audit", name: "Audit log" },
  { path: "/system/data", name: "Retention and holds" },
  { path: "/system/access", name: "Access" },
  { path: "/system/about", name: "About" },
] as const;

/** The head of the pages for operators. */
export function SystemHead({ title, children }: { title: string; children?: ReactNode }): ReactNode {
  const [path] = useLocation();
  return (
    <>
      <div className="page-head">
        <h1>{title}</h1>
        {children}
      </div>
      <nav aria-label="System" className="tabs">
        {tabs.map((tab) => (
          <Link key={tab.path} href={tab.path} aria-current={tab.path === path ? "page" : undefined}>
            {tab.name}
          </Link>
        ))}
      </nav>
    </>
  );
}

/** Why a page cannot be read with this key. */
export function Lacks({ scope }: { scope: string }): ReactNode {
  return (
    <p className="note idle">
      This key lacks the scope <code>{scope}</code>.
    </p>
  );
}

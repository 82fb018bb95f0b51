import { Suspense, useEffect, useRef, useState, type ReactNode } from "react";
import { Link, Route, Switch, useLocation } from "wouter";
import { leaveAllTabs } from "../api/query";
import { signOut, useConfig } from "../api/session";
import { Mark } from "../ui/Mark";
import { PageBoundary } from "../ui/PageBoundary";
import { useAnnouncement } from "../ui/announce";
import { KeysDialog } from "./KeysDialog";
import { useShortcuts } from "./keys";
import { navigation, routes } from "./routes";
import { setTheme, useTheme, type Theme } from "./theme";
import { NotFoundPage } from "../pages/NotFoundPage";

/** The frame of every page: navigation and settings. */
export function Shell(): ReactNode {
  const [path, navigate] = useLocation();
  const config = useConfig();
  const [keysShown, showKeys] = useState(false);
  const main = useRef<HTMLElement>(null);
  useFocusOnNavigation(path, main);
  useShortcuts([
    ...navigation.map((page) => ({ keys: page.key, does: `Go to ${page.name}`, run: () => navigate(page.path) })),
    { keys: "?", does: "Show keyboard shortcuts", run: () => showKeys(true) },
    { keys: ".", does: "Copy the link to this page", run: () => void navigator.clipboard?.writeText(location.href) },
  ]);
  return (
    <>
      <a
        className="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to the content
      </a>
      <header className="bar">
        <Link href="/" className="brand" aria-label="Waybill, all runs">
          <Mark /> Waybill
        </Link>
        {config.mode === "dev" && <span className="mode">development</span>}
        <nav aria-label="Pages">
          <ul>
            {(config.signedIn ? navigation : []).map((page) => (
              <li key={page.path}>
                <Link href={page.path} aria-current={isCurrent(page.path, path) ? "page" : undefined}>
                  {page.name}
                </Link>
              </li>
            ))}
          </ul>
        </nav>
        <div className="bar-end">
          {config.session && (
            <span className="who" title={`Tenant ${config.session.tenant}, key ${config.session.keyId}`}>
              {config.session.user ?? config.session.tenant}
            </span>
          )}
          <ThemeSwitch />
          <button type="button" className="quiet" onClick={() => showKeys(true)} aria-label="Keyboard shortcuts" title="Keyboard shortcuts">
            <kbd aria-hidden="true">?</kbd>
          </button>
          {config.signedIn && (
            <button
              type="button"
              className="quiet"
              onClick={() => {
                void signOut().finally(leaveAllTabs);
              }}
            >
              Sign out
            </button>
          )}
        </div>
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        <PageBoundary key={path}>
          <Suspense fallback={<p className="loading">Loading…</p>}>
            <Switch>
              {routes.map((route) => (
                <Route key={route.path} path={route.path} component={route.page} />
              ))}
              <Route component={NotFoundPage} />
            </Switch>
          </Suspense>
        </PageBoundary>
      </main>
      <Announcer />
      <KeysDialog open={keysShown} onClose={() => showKeys(false)} />
    </>
  );
}

function isCurrent(page: string, path: string): boolean {
  return page === "/" ? path === "/" || path.startsWith("/runs") : path.startsWith(page);
}

// Moves focus to the main region after navigation, but not on the first page.
function useFocusOnNavigation(path: string, main: { current: HTMLElement | null }): void {
  const before = useRef(path);
  useEffect(() => {
    if (before.current === path) return;
    before.current = path;
    main.current?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }, [path, main]);
}

function Announcer(): ReactNode {
  return (
    <output className="unseen">{useAnnouncement()}</output>
  );
}

const themes: readonly Theme[] = ["system", "light", "dark"];

function ThemeSwitch(): ReactNode {
  const theme = useTheme();
  return (
    <select className="quiet" aria-label="Theme" value={theme} onChange={(event) => setTheme(event.target.value as Theme)}>
      {themes.map((name) => (
        <option key={name} value={name}>
          {name[0]?.toUpperCase() + name.slice(1)} theme
        </option>
      ))}
    </select>
  );
}

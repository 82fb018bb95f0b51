import { Suspense, useEffect, useRef, useState, type ReactNode } from "react";
import { Link, Route, Switch, useLocation } from "wouter";
import { leaveAllTabs } from "../api/query";
import { signOut, useConfig } from "../api/session";
import { Icon } from "../ui/Icon";
import { Mark } from "../ui/Mark";
import { PageBoundary } from "../ui/PageBoundary";
import { useAnnouncement } from "../ui/announce";
import { loaded } from "../ui/load";
import { useWaiting, waitingText } from "../ui/title";
import { setZone, useZone, type Zone } from "../ui/zone";
import { KeysDialog } from "./KeysDialog";
import { useShortcuts } from "./keys";
import { navigation, routes } from "./routes";
import { setTheme, useTheme, type Theme } from "./theme";
import { NotFoundPage } from "../pages/NotFoundPage";

const WaitingCount = loaded(() => import("../inbox/WaitingCount"));

/** The frame of every page: navigation and settings. */
export function Shell(): ReactNode {
  const [path, navigate] = useLocation();
  const config = useConfig();
  const [keysShown, showKeys] = useState(false);
  const main = useRef<HTMLElement>(null);
  useZone(); // A change renders the page again, with its times; what is typed stays.
  // The menu of a narrow window is open on the page where it was opened.
  const [menuAt, openMenu] = useState<string>();
  const menuOpen = menuAt === path;
  useEffect(() => {
    if (!menuOpen) return;
    const close = (event: KeyboardEvent): void => {
      if (event.key === "Escape") openMenu(undefined);
    };
    document.addEventListener("keydown", close);
    return () => document.removeEventListener("keydown", close);
  }, [menuOpen]);
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
      <header className={menuOpen ? "bar menu-open" : "bar"}>
        <Link href="/" className="brand" aria-label="Waybill, all runs">
          <Mark /> Waybill
        </Link>
        {config.mode === "dev" && <span className="mode">development</span>}
        <button type="button" className="bar-menu" aria-expanded={menuOpen} aria-controls="bar-more" onClick={() => openMenu(menuOpen ? undefined : path)}>
          Menu <WaitingBadge />
        </button>
        <div className="bar-more" id="bar-more">
          <nav aria-label="Pages">
            <ul>
              {(config.signedIn ? navigation : []).map((page) => (
                <li key={page.path}>
                  <Link href={page.path} aria-current={isCurrent(page.path, path) ? "page" : undefined} onClick={() => openMenu(undefined)}>
                    <Icon name={page.icon} />
                    {page.name}
                    {page.path === "/inbox" && <WaitingBadge />}
                  </Link>
                </li>
              ))}
            </ul>
          </nav>
          <div className="bar-end">
            {config.session && (
              <span className="who">
                Tenant {config.session.tenant}
                {config.session.user && `, ${config.session.user}`}
              </span>
            )}
            <ThemeSwitch />
            <ZoneSwitch />
            <button type="button" className="quiet" onClick={() => showKeys(true)}>
              Keyboard shortcuts <kbd aria-hidden="true">?</kbd>
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
        </div>
      </header>
      {config.session?.scopes.includes("approvals:respond") && (
        <Suspense fallback={null}>
          <WaitingCount />
        </Suspense>
      )}
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

function WaitingBadge(): ReactNode {
  const waiting = useWaiting();
  if (waiting.count === 0) return null;
  return (
    <span className={waiting.soon ? "nav-count soon" : "nav-count"}>
      {waitingText(waiting)}
      <span className="unseen"> open {waiting.count === 1 ? "question" : "questions"} for you{waiting.soon && ", due soon"}</span>
    </span>
  );
}

function ZoneSwitch(): ReactNode {
  return (
    <select className="quiet" aria-label="Time zone" value={useZone()} onChange={(event) => setZone(event.target.value as Zone)}>
      <option value="local">Local time</option>
      <option value="utc">UTC</option>
    </select>
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

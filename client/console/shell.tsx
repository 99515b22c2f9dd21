import { ActionIcon, Drawer, useComputedColorScheme, useMantineColorScheme } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Suspense, useEffect, useRef, useState } from 'react';
import { Link, Route, Switch, useLocation } from 'wouter';
import { trpc } from './api.ts';
import { BASE_PATH } from './base-path.ts';
import { useCurrentUser } from './current-user.ts';
import { NAVIGATION } from './navigation.ts';
import { Avatar } from './components/avatar.tsx';
import { ErrorBoundary } from './components/error-boundary.tsx';
import { Icon } from './components/icon.tsx';
import { OfflineBanner } from './components/offline-banner.tsx';
import { PageSkeleton } from './components/splash.tsx';
import { Dialogs, openPalette } from './palette/dialogs.tsx';
import { NotFoundPage, ROUTES } from './routes.tsx';

/** The page beside a sidebar, or on a phone below a bar with a drawer. */
export function Shell() {
  const [isOpen, setOpen] = useState(false);
  const [location] = useLocation();
  const main = useRef<HTMLElement>(null);
  const previousLocation = useRef(location);
  useEffect(() => {
    setOpen(false);
    // A new page starts at the top, for the viewport and for screen readers.
    if (previousLocation.current !== location) {
      main.current?.focus({ preventScroll: true });
      window.scrollTo(0, 0);
    }
    previousLocation.current = location;
  }, [location]);
  return (
    <div className="shell">
      <a className="skip-link" href="#main">
        Skip to content
      </a>
      <header className="shell-bar">
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label="Open navigation" onClick={() => setOpen(true)}>
          <Icon name="menu" />
        </ActionIcon>
        <Brand />
      </header>
      <aside className="shell-side">
        <Brand />
        <Navigation label="Pages" search={openPalette} />
        <Foot />
      </aside>
      <Drawer opened={isOpen} onClose={() => setOpen(false)} title={<Brand />} size="17rem" padding="sm">
        <Navigation
          label="Pages (drawer)"
          search={() => {
            setOpen(false);
            openPalette();
          }}
        />
        <Foot />
      </Drawer>
      <Dialogs />
      <main className="shell-main" id="main" tabIndex={-1} ref={main}>
        <OfflineBanner />
        <ErrorBoundary key={location}>
          <Suspense fallback={<PageSkeleton />}>
            <Switch>
              {ROUTES.map(({ path, page: Page }) => (
                <Route key={path} path={path}>
                  <Page />
                </Route>
              ))}
              <Route>
                <NotFoundPage />
              </Route>
            </Switch>
          </Suspense>
        </ErrorBoundary>
      </main>
    </div>
  );
}

const Brand = () => (
  <Link href="/" className="brand">
    <svg viewBox="0 0 32 32" aria-hidden="true" className="brand-mark">
      <rect width="32" height="32" rx="8" />
      <path d="M7 11h6c5 0 3 10 8 10h4M7 21h4m10-10h4" />
    </svg>
    Data pipelines
  </Link>
);

function Navigation({ label, search }: { label: string; search: () => void }) {
  const [location] = useLocation();
  const isCurrent = (href: string) =>
    href === '/' ? location === '/' || location === '/console' : location.startsWith(href);
  return (
    <nav className="nav" aria-label={label}>
      <button type="button" className="nav-link nav-search" onClick={search}>
        <Icon name="search" />
        Search
        <kbd aria-hidden="true">Ctrl K</kbd>
      </button>
      {NAVIGATION.map((group) => (
        <div key={group.label} className="nav-group">
          <div className="nav-label">{group.label}</div>
          <ul>
            {group.items.map(({ href, icon, label: name }) => (
              <li key={href}>
                <Link href={href} className="nav-link" aria-current={isCurrent(href) ? 'page' : undefined}>
                  <Icon name={icon} />
                  {name}
                  {href === '/console/cases' && <OpenCases />}
                </Link>
              </li>
            ))}
          </ul>
        </div>
      ))}
      <a className="nav-link" href={`${BASE_PATH}/docs`}>
        Documentation
      </a>
    </nav>
  );
}

const BADGE_MAX = 10;
const BADGE_POLL_MS = 30_000;

/** How many cases are open. */
function OpenCases() {
  const open = useQuery(
    trpc.automation.listCases.queryOptions({ status: 'open', limit: BADGE_MAX }, { refetchInterval: BADGE_POLL_MS }),
  );
  const count = open.data?.length ?? 0;
  if (count === 0) return null;
  return (
    <span className="nav-badge number">
      {count === BADGE_MAX ? `${BADGE_MAX - 1}+` : count}
      <span className="hidden"> open</span>
    </span>
  );
}

function Foot() {
  const me = useCurrentUser();
  const { setColorScheme } = useMantineColorScheme({ keepTransitions: true });
  const scheme = useComputedColorScheme('light', { getInitialValueInEffect: false });
  const other = scheme === 'dark' ? 'light' : 'dark';
  return (
    <div className="shell-foot">
      <Link href="/console/profile" className="shell-me">
        <Avatar name={me.full_name} url={me.avatar_url} />
        <span>
          <b title={me.full_name}>{me.full_name}</b>
          <small title={me.account.name}>{me.account.name}</small>
        </span>
      </Link>
      <ActionIcon
        variant="subtle"
        color="gray"
        size="lg"
        aria-label={`Switch to ${other} mode`}
        onClick={() => setColorScheme(other)}
      >
        <Icon name={other === 'dark' ? 'moon' : 'sun'} />
      </ActionIcon>
    </div>
  );
}

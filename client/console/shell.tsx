import { ActionIcon, Drawer, useComputedColorScheme, useMantineColorScheme } from '@mantine/core';
import { Suspense, useEffect, useRef, useState } from 'react';
import { Link, Route, Switch, useLocation } from 'wouter';
import { useCurrentUser } from './current-user.ts';
import { NAVIGATION } from './navigation.ts';
import { Avatar } from './components/avatar.tsx';
import { ErrorBoundary } from './components/error-boundary.tsx';
import { Icon } from './components/icon.tsx';
import { OfflineBanner } from './components/offline-banner.tsx';
import { PageSkeleton } from './components/splash.tsx';
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
        <Navigation label="Pages" />
        <Foot />
      </aside>
      <Drawer opened={isOpen} onClose={() => setOpen(false)} title={<Brand />} size="17rem" padding="sm">
        <Navigation label="Pages (drawer)" />
        <Foot />
      </Drawer>
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

function Navigation({ label }: { label: string }) {
  const [location] = useLocation();
  const isCurrent = (href: string) =>
    href === '/' ? location === '/' || location === '/console' : location.startsWith(href);
  return (
    <nav className="nav" aria-label={label}>
      {NAVIGATION.map((group) => (
        <div key={group.label} className="nav-group">
          <div className="nav-label">{group.label}</div>
          <ul>
            {group.items.map(({ href, icon, label: name }) => (
              <li key={href}>
                <Link href={href} className="nav-link" aria-current={isCurrent(href) ? 'page' : undefined}>
                  <Icon name={icon} />
                  {name}
                </Link>
              </li>
            ))}
          </ul>
        </div>
      ))}
      <a className="nav-link" href="/docs">
        Documentation
      </a>
    </nav>
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
          <b>{me.full_name}</b>
          <small>{me.account.name}</small>
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

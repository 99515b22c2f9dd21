import { type ReactNode, useEffect } from 'react';
import { Link } from 'wouter';
import { Icon } from './icon.tsx';

interface Crumb {
  href: string;
  label: string;
}

interface PageProps {
  title: string;
  /** Beside the title, such as a status. */
  mark?: ReactNode;
  /** Below the title. */
  lead?: ReactNode;
  /** Buttons to the right of the title. */
  actions?: ReactNode;
  /** Link to the parent page. */
  back?: Crumb;
  /** Links below the parent page, such as folders. */
  trail?: Crumb[];
  children: ReactNode;
}

/** Frame of every page: sets the tab title and the one h1. */
export function Page({ title, mark, lead, actions, back, trail = [], children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Data pipelines`;
  }, [title]);
  return (
    <div className="page">
      <header className="page-head">
        <div className="page-name">
          {back && (
            <div>
              <Link href={back.href} className="page-back">
                <Icon name="back" size={14} />
                {back.label}
              </Link>
              {trail.map(({ href, label }) => (
                <span key={href} className="page-back">
                  <span aria-hidden="true">/</span>
                  <Link href={href}>{label}</Link>
                </span>
              ))}
            </div>
          )}
          <div className="page-title">
            <h1>{title}</h1>
            {mark}
          </div>
          {lead && <div className="page-lead">{lead}</div>}
        </div>
        {actions && <div className="page-actions">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

/** A card with a heading. */
export function Section(props: { title: string; lead?: ReactNode; actions?: ReactNode; children: ReactNode }) {
  const { title, lead, actions, children } = props;
  return (
    <section className="card" aria-label={title}>
      <header className="card-head">
        <div>
          <h2>{title}</h2>
          {lead && <p className="dimmed">{lead}</p>}
        </div>
        {actions && <div className="card-actions">{actions}</div>}
      </header>
      {children}
    </section>
  );
}

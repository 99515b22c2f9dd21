import { Icon, type IconName } from '../../components/icon.tsx';
import { LOGOS } from './connector-logos.ts';

interface ConnectorMarkProps {
  connector: { name: string; display_name: string; icon_url: string | null };
}

/** Connectors of no product. */
const ICONS: Readonly<Record<string, IconName>> = {
  demo: 'demo',
  file: 'file',
  http: 'send',
  http_api: 'braces',
  slack: 'chat',
  webhook: 'webhook',
};

/** The icon of a connector, or the first letters of its name. */
export function ConnectorMark({ connector: { name, display_name, icon_url } }: ConnectorMarkProps) {
  const [logo, icon] = [LOGOS[name], ICONS[name]];
  return (
    <span className="connector-mark" aria-hidden="true">
      {icon_url !== null ? (
        <img src={icon_url} alt="" width={24} height={24} />
      ) : logo ? (
        <svg viewBox="0 0 24 24" width={22} height={22} fill="currentColor" focusable="false">
          <path d={logo} />
        </svg>
      ) : icon ? (
        <Icon name={icon} size={22} />
      ) : (
        display_name.slice(0, 2)
      )}
    </span>
  );
}

/** Paths on a 24 × 24 grid with 2 px strokes. */
const PATHS = {
  add: 'M12 5v14M5 12h14',
  alert: 'M12 8v5m0 3.5v.01M10.3 4.2 2.7 17.5A2 2 0 0 0 4.4 20.5h15.2a2 2 0 0 0 1.7-3L13.7 4.2a2 2 0 0 0-3.4 0Z',
  arrow: 'M5 12h14m-5-5 5 5-5 5',
  back: 'M15 18l-6-6 6-6',
  bell: 'M6 16.5V11a6 6 0 1 1 12 0v5.5l1.5 1.5h-15L6 16.5Zm4 4h4',
  bellOff: 'M6 16.5V11a6 6 0 0 1 .6-2.6M9.5 5.5A6 6 0 0 1 18 11v3M4.5 18H16m-6 2.5h4M3.5 3.5l17 17',
  braces: 'M9 4H8a2 2 0 0 0-2 2v4l-2 2 2 2v4a2 2 0 0 0 2 2h1M15 4h1a2 2 0 0 1 2 2v4l2 2-2 2v4a2 2 0 0 1-2 2h-1',
  calendar: 'M5 6h14a1 1 0 0 1 1 1v12a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1V7a1 1 0 0 1 1-1ZM8 3v5m8-5v5M4 11h16',
  case: 'M4 13l3-8h10l3 8v5a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1v-5Zm0 0h5l1.5 2.5h3L15 13h5',
  chat: 'M5 5h14a1 1 0 0 1 1 1v10a1 1 0 0 1-1 1h-7l-5 3.5V17H5a1 1 0 0 1-1-1V6a1 1 0 0 1 1-1ZM8 9.5h8m-8 3.5h5',
  check: 'M5 12.5l4.5 4.5L19 7.5',
  clock: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18ZM12 7v5l3.5 2',
  close: 'M6 6l12 12M18 6L6 18',
  connection: 'M9 7H6.5a4.5 4.5 0 0 0 0 9H9m6-9h2.5a4.5 4.5 0 0 1 0 9H15M8.5 11.5h7',
  copy: 'M9 9h10a1 1 0 0 1 1 1v9a1 1 0 0 1-1 1h-9a1 1 0 0 1-1-1V9ZM5 15V5a1 1 0 0 1 1-1h9',
  demo: 'M4 5h2l2.5 10h9L20 8H7m2.5 11.5v.01m7-.01v.01',
  destination: 'M4 15v3a2 2 0 0 0 2 2h12a2 2 0 0 0 2-2v-3M12 4v11m-4.5-4.5L12 15l4.5-4.5',
  down: 'M6 9l6 6 6-6',
  edit: 'M4 20h4L19.5 8.5a2.1 2.1 0 0 0-3-3L5 17v3m9-12 3 3',
  file: 'M7 3.5h7l4.5 4.5v11a1.5 1.5 0 0 1-1.5 1.5H7A1.5 1.5 0 0 1 5.5 19V5A1.5 1.5 0 0 1 7 3.5ZM14 3.5V8h4.5M9 12.5h6m-6 3.5h6',
  filter: 'M4 5h16l-6 7.5V19l-4 1.5v-8L4 5Z',
  folder:
    'M4 6.5A1.5 1.5 0 0 1 5.5 5H10l2 2.5h6.5A1.5 1.5 0 0 1 20 9v8.5a1.5 1.5 0 0 1-1.5 1.5h-13A1.5 1.5 0 0 1 4 17.5v-11Z',
  key: 'M14.5 13.5a5 5 0 1 0-4-4L3 17v4h4v-2.5h2.5V16l2-2a5 5 0 0 0 3-.5ZM16 8v.01',
  logs: 'M5 4h14v16H5zM9 9h6m-6 3.5h6M9 16h3',
  menu: 'M4 7h16M4 12h16M4 17h16',
  moon: 'M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5Z',
  more: 'M6 12v.01M12 12v.01M18 12v.01',
  overview: 'M4 4h7v9H4zm9 0h7v5h-7zm0 9h7v7h-7zM4 17h7v3H4z',
  pause: 'M8 5v14m8-14v14',
  play: 'M7 4.5v15l12-7.5-12-7.5Z',
  profile: 'M12 12.5a4 4 0 1 0 0-8 4 4 0 0 0 0 8ZM4.5 20.5a7.5 7.5 0 0 1 15 0',
  refresh: 'M20 12a8 8 0 1 1-2.5-5.8M20 3.5V8h-4.5',
  role: 'M12 21c4.5-1.8 7.5-5 7.5-10V6L12 3 4.5 6v5c0 5 3 8.2 7.5 10Zm-3-9.5 2.2 2.2 4-4.2',
  search: 'M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14Zm5-2 4.5 4.5',
  send: 'M20.5 3.5 10 14M20.5 3.5 14 20.5 10 14 3.5 10l17-6.5Z',
  signOut: 'M14 4h4a2 2 0 0 1 2 2v12a2 2 0 0 1-2 2h-4M10 16l-4-4 4-4m-4 4h10',
  source: 'M4 15v3a2 2 0 0 0 2 2h12a2 2 0 0 0 2-2v-3M12 15V4M7.5 8.5 12 4l4.5 4.5',
  stop: 'M6 6h12v12H6z',
  sun: 'M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8ZM12 2.5v2m0 15v2M2.5 12h2m15 0h2M5.3 5.3l1.4 1.4m10.6 10.6 1.4 1.4M18.7 5.3l-1.4 1.4M6.7 17.3l-1.4 1.4',
  trash: 'M4 7h16M9 7V4h6v3M6.5 7l1 13h9l1-13M10 11v5m4-5v5',
  trigger: 'M13 2.5 4.5 14H11l-1 7.5L19.5 10H13l0-7.5Z',
  usage: 'M4 20V10m5.3 10V4m5.4 16v-7M20 20V7',
  users:
    'M9 12a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7ZM2.5 20a6.5 6.5 0 0 1 13 0M16 5.3a3.5 3.5 0 0 1 0 6.4m2 2.8a6.5 6.5 0 0 1 3.5 5.5',
  webhook:
    'M9.5 10.5a4 4 0 1 1 5.5-4M6.5 12.5a4 4 0 1 0 4 5h6M13 8.5l3.5 5.5a4 4 0 1 1-2 6M12 7v.01M7 17v.01M17 17.5v.01',
} as const;

export type IconName = keyof typeof PATHS;

/** Decorative: the text beside it or the label of its button carries the meaning. */
export const Icon = ({ name, size = 18 }: { name: IconName; size?: number }) => (
  <svg className="icon" viewBox="0 0 24 24" width={size} height={size} aria-hidden="true" focusable="false">
    <path d={PATHS[name]} />
  </svg>
);

/** Pages of the console below /console. */
export const PAGES = [
  'connections',
  'sources',
  'destinations',
  'triggers',
  'cases',
  'events',
  'usage',
  'users',
  'roles',
  'profile',
];

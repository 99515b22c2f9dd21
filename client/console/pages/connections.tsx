import { Page } from '../parts/page.tsx';

const ConnectionsPage = () => <Page title="Connections">…</Page>;
export default ConnectionsPage;

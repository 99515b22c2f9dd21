import { Page } from '../parts/page.tsx';

const OverviewPage = () => <Page title="Overview">…</Page>;
export default OverviewPage;

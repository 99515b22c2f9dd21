import { Link } from 'wouter';
import { Empty } from '../components/empty.tsx';
import { Page } from '../components/page.tsx';

const NotFoundPage = () => (
  <Page title="No such page">
    <Empty icon="search" title="There is nothing at this address">
      <Link href="/">Go to the overview</Link>
    </Empty>
  </Page>
);
export default NotFoundPage;

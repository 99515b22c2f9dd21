import { Link } from 'wouter';
import { Empty } from '../components/empty.tsx';
import { Page } from '../components/page.tsx';

const NotFoundPage = () => (
  <Page title="Page not found">
    <Empty icon="search" title="This page does not exist">
      <Link href="/">Go to overview</Link>
    </Empty>
  </Page>
);
export default NotFoundPage;

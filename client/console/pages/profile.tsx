import { Page } from '../parts/page.tsx';

const ProfilePage = () => <Page title="Profile">…</Page>;
export default ProfilePage;

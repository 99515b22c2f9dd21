import { useQuery } from '@tanstack/react-query';
import { useRoute } from 'wouter';
import { trpc } from './api.ts';
import { Failure } from './components/failure.tsx';
import { setTimeZone } from './components/format.ts';
import { Splash } from './components/splash.tsx';
import { InvitationPage } from './pages/invitation.tsx';
import { SignedInPage, SignInPage } from './pages/sign-in.tsx';
import { ConfirmSession, setSessionOfKey } from './confirm-session.tsx';
import { CurrentUserContext } from './current-user.ts';
import { CONFIRMED_PATH, signedOut } from './session.ts';
import { Shell } from './shell.tsx';

/**
 * The console, or the page in front of it. When a session ends, the sign-in form covers the current page, which stays
 * mounted underneath with all of its unsaved input.
 */
export function App() {
  const [isInvitation] = useRoute('/invitation');
  const [isConfirmed] = useRoute(CONFIRMED_PATH);
  if (isInvitation) return <InvitationPage />;
  return isConfirmed ? <SignedInPage /> : <Console />;
}

function Console() {
  const me = useQuery(trpc.users.me.queryOptions());
  const reason = signedOut.use();
  if (me.data) {
    setTimeZone(me.data.timezone);
    setSessionOfKey(me.data.api_key !== null);
    return (
      <CurrentUserContext value={me.data}>
        <div inert={reason !== null}>
          <Shell key={me.data.timezone} />
        </div>
        <ConfirmSession />
        {reason !== null && <SignInPage reason={reason} over previousUser={me.data} />}
      </CurrentUserContext>
    );
  }
  if (reason !== null) return <SignInPage reason={reason} />;
  if (me.error) {
    return (
      <main className="splash">
        <Failure error={me.error} retry={() => void me.refetch()} />
      </main>
    );
  }
  return <Splash />;
}

CREATE TABLE "oauth_consents" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"user_id" uuid NOT NULL,
	"account_connector_id" uuid,
	"connector_type" text NOT NULL,
	"connector_name" text NOT NULL,
	"status" text DEFAULT 'pending' NOT NULL,
	"state_hash" text NOT NULL,
	"browser_hash" text,
	"code_hash" text,
	"wrong_codes" integer DEFAULT 0 NOT NULL,
	"sealed" text NOT NULL,
	"error_code" text,
	"error_message" text,
	"expires_at" timestamp(3) with time zone NOT NULL,
	"created_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "oauth_consents_connector_type_known" CHECK ("oauth_consents"."connector_type" in ('source', 'destination')),
	CONSTRAINT "oauth_consents_status_known" CHECK ("oauth_consents"."status" in ('pending', 'exchanging', 'completed', 'failed', 'used')),
	CONSTRAINT "oauth_consents_error" CHECK (("oauth_consents"."status" = 'failed') = ("oauth_consents"."error_code" is not null)),
	CONSTRAINT "oauth_consents_codes" CHECK ("oauth_consents"."wrong_codes" >= 0)
);
--> statement-breakpoint
ALTER TABLE "secret_uses" DROP CONSTRAINT "secret_uses_purpose_known";--> statement-breakpoint
ALTER TABLE "oauth_consents" ADD CONSTRAINT "oauth_consents_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "oauth_consents" ADD CONSTRAINT "oauth_consents_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "oauth_consents_state" ON "oauth_consents" USING btree ("state_hash");--> statement-breakpoint
CREATE INDEX "oauth_consents_expiry" ON "oauth_consents" USING btree ("expires_at");--> statement-breakpoint
ALTER TABLE "secret_uses" ADD CONSTRAINT "secret_uses_purpose_known" CHECK ("secret_uses"."purpose" in ('test', 'discovery', 'possible_values', 'preview', 'chat_channels', 'chat_message', 'metadata_export', 'change_log', 'verification', 'webhook', 'consent', 'run'));
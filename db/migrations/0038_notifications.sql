CREATE TABLE "notification_settings" (
	"account_id" uuid PRIMARY KEY NOT NULL,
	"timezone" text,
	"quiet_from" text,
	"quiet_until" text,
	"urgent_severity" text DEFAULT 'critical',
	"digest_at" text,
	"next_digest_at" timestamp(3) with time zone,
	"updated_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "notification_settings_urgent_severity_known" CHECK ("notification_settings"."urgent_severity" in ('low', 'info', 'warning', 'high', 'critical')),
	CONSTRAINT "notification_settings_quiet" CHECK (("notification_settings"."quiet_from" is null) = ("notification_settings"."quiet_until" is null)),
	CONSTRAINT "notification_settings_digest" CHECK (("notification_settings"."digest_at" is null) = ("notification_settings"."next_digest_at" is null))
);
--> statement-breakpoint
ALTER TABLE "connections" ADD COLUMN "owner" text;--> statement-breakpoint
ALTER TABLE "account_connectors" ADD COLUMN "owner" text;--> statement-breakpoint
ALTER TABLE "deliveries" ADD COLUMN "held_until" timestamp(3) with time zone;--> statement-breakpoint
ALTER TABLE "triggers" ADD COLUMN "owner" text;--> statement-breakpoint
ALTER TABLE "notification_settings" ADD CONSTRAINT "notification_settings_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "notification_settings_digest_due" ON "notification_settings" USING btree ("next_digest_at") WHERE "notification_settings"."next_digest_at" is not null;
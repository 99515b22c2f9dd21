CREATE TABLE "secret_uses" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"account_connector_id" uuid NOT NULL,
	"purpose" text NOT NULL,
	"host" text NOT NULL,
	"actor_type" text NOT NULL,
	"actor_id" uuid,
	"connection_run_id" uuid,
	"stream_run_id" uuid,
	"occurred_at" timestamp(3) with time zone NOT NULL,
	CONSTRAINT "secret_uses_purpose_known" CHECK ("secret_uses"."purpose" in ('test', 'discovery', 'possible_values', 'chat_channels', 'chat_message', 'metadata_export', 'change_log', 'verification', 'run')),
	CONSTRAINT "secret_uses_actor_type_known" CHECK ("secret_uses"."actor_type" in ('user', 'schedule', 'system', 'automation'))
);
--> statement-breakpoint
ALTER TABLE "secret_uses" ADD CONSTRAINT "secret_uses_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "secret_uses_list" ON "secret_uses" USING btree ("account_connector_id","id");
/**
 * The tables of the interface (4.1 to 4.8) as data, one row an operation:
 *
 * method path | operation id | query parameters | request body | success
 *
 * Path parameters are untyped strings unless the path says otherwise. In the query, `name:type` is required,
 * `name:type?` is optional, `name:type=value` has a default, and `+name` is an addition of this service, always
 * optional. A body `Name?` may be absent or null. A success is a status and a schema: `[Name]` is an array, `-` no body.
 */
const TABLE = `
GET    /connections | list_connections | +limit +offset +status +source_id +destination_id +tag +folder | - | 200 [ConnectionSchema]
POST   /connections | create_connection | USAGE | CreateConnectionRequest | 201 ConnectionSchema
GET    /connections/custom-run/split-options | get_custom_run_split_options | - | - | 200 CustomRunSplitOptions
GET    /connections/{connection_id}/field_mapping_sources | list_field_mapping_sources | - | - | 200 [FieldMappingSourceConnectionSchema]
GET    /connections/{connection_id} | get_connection | - | - | 200 ConnectionSchema
POST   /connections/{connection_id} | update_connection | - | UpdateConnectionRequest | 200 ConnectionSchema
DELETE /connections/{connection_id} | delete_connection | - | - | 204 -
GET    /connections/{connection_id}/runs | list_connection_runs | +limit +offset +status +created_from +created_before | - | 200 [ConnectionRunSchema]
GET    /connections/{connection_id}/runs/{connection_run_id}/stream_runs | list_stream_runs | cross_account:boolean=false +limit +offset +status | - | 200 [StreamRunSchema]
POST   /connections/{connection_id}/run | run_connection | - | CustomRunParameters? | 200 string|null
POST   /connections/{connection_id}/run/launch-plan | launch_custom_run_plan | - | CustomRunPlanLaunchRequest | 200 CustomRunPlanLaunchResponse
POST   /connections/{connection_id}/run/preview | preview_custom_run | - | CustomRunParameters | 200 CustomRunPlannerDecision
POST   /connections/{connection_run_id}/stop | stop_connection_run | - | - | 200 string|null
POST   /connections/{connection_run_id}/rerun | rerun_connection_run | +streams | - | 200 string
POST   /connections/{connection_id}/update_catalog | update_connection_catalog | - | - | 200 string

GET    /connections/{connection_id}/runs/{connection_run_id}/network_logs | download_connection_run_network_logs | connector_type:ConnectorType? cross_account:boolean=false | - | 200 ndjson
GET    /connection_runs/{connection_run_id}/network_logs | download_run_network_logs | connector_type:ConnectorType? cross_account:boolean=false | - | 200 ndjson
GET    /connections/{connection_id}/runs/{connection_run_id}/stream_runs/{stream_run_id:uuid}/network_logs | download_stream_run_network_logs | connector_type:ConnectorType cross_account:boolean=false | - | 200 ndjson

GET    /connectors | list_connectors | - | - | 200 [ConnectorSchema]
GET    /connectors/{connector_type:ConnectorType}/{connector_name} | get_connector | connector_id:string? | - | 200 ConnectorSchema

POST   /account_connectors/generate_ssh_key | generate_ssh_key | - | - | 200 GenerateSSHKeyResponse
GET    /account_connectors | list_account_connectors | connector_type:ConnectorType? connector_name:string? +limit +offset | - | 200 [AccountConnectorSchema]
POST   /account_connectors | create_account_connector | USAGE | CreateAccountConnectorRequest | 201 AccountConnectorSchema
GET    /account_connectors/{connector_type:ConnectorType}/{account_connector_id} | get_account_connector | - | - | 200 AccountConnectorSchema
POST   /account_connectors/{account_connector_id}/catalog | update_account_connector_catalog | - | UpdateAccountConnectorCatalogRequest | 200 [AccountConnectorCatalogItemSchema]
POST   /account_connectors/{account_connector_id} | update_account_connector | - | UpdateAccountConnectorRequest | 200 AccountConnectorSchema
DELETE /account_connectors/{account_connector_id} | delete_account_connector | - | - | 204 -
POST   /account_connectors/{account_connector_id}/login | login_account_connector | - | - | 200 string
POST   /account_connectors/{account_connector_id}/source_tasks/export_metadata | export_source_metadata | - | ExportSourceMetadataRequest? | 200 string
GET    /account_connectors/{account_connector_id}/dynamic_possible_values/{parameter_name} | list_dynamic_possible_values | connection_id:string? stream_id:uuid? | - | 200 {string}
POST   /account_connectors/{account_connector_id}/validate_parameter | validate_parameter | - | ValidationRequest | 200 ValidationResult

GET    /users | list_users | - | - | 200 [UserSchemaWithMeTagged]
POST   /users | create_user | USAGE | CreateUserRequest | 201 UserSchema
GET    /users/me | get_current_user | - | - | 200 ExpandedUserSchema
GET    /users/{user_id} | get_user | - | - | 200 UserSchema
POST   /users/{user_id} | update_user | - | UpdateUserRequest | 200 UserSchema
DELETE /users/{user_id} | delete_user | - | - | 204 -
POST   /users/me/avatar | upload_avatar | - | multipart Body_upload_avatar_users_me_avatar_post | 200 AvatarUploadResponse
PUT    /users/me/onboarding-state | update_onboarding_state | - | OnboardingStateSchema | 200 OnboardingStateResponse

GET    /roles | list_roles | - | - | 200 [RoleSchema]
POST   /roles | create_role | - | CreateRequest | 201 RoleSchema
GET    /roles/{role_id} | get_role | - | - | 200 RoleSchema
POST   /roles/{role_id} | update_role | - | UpdateRequest | 200 RoleSchema
DELETE /roles/{role_id} | delete_role | - | - | 204 -
POST   /roles/{role_id}/users/{user_id} | add_user_to_role | - | - | 200 RoleSchema
DELETE /roles/{role_id}/users/{user_id} | remove_user_from_role | - | - | 204 -

POST   /automation/evaluate_automator_rule | evaluate_automator_rule | - | EvaluateRequest | 200 EvaluateResponse
GET    /automation/events | list_events | limit:integer=100 offset:integer=0 +event +category +severity +connection_id +after +from +to | - | 200 [EventSchema]
GET    /automation/triggers | list_triggers | include_system:boolean=false +limit +offset | - | 200 [TriggerSchema]
POST   /automation/triggers | create_trigger | - | CreateTriggerRequest | 201 TriggerSchema
GET    /automation/triggers/{trigger_id} | get_trigger | - | - | 200 TriggerSchema
POST   /automation/triggers/{trigger_id} | update_trigger | - | UpdateTriggerRequest | 200 TriggerSchema
DELETE /automation/triggers/{trigger_id} | delete_trigger | - | - | 204 -
GET    /automation/cases | list_cases | +limit +offset +status +severity +trigger_id | - | 200 [CaseSchema]
GET    /automation/cases/{case_id} | get_case | - | - | 200 CaseSchema
POST   /automation/cases/{case_id} | update_case_status | status:CaseStatus | - | 200 CaseSchema
GET    /automation/chat_channels/{account_connector_id} | list_chat_channels | - | - | 200 [ChatChannel]

GET    /billing/plans | list_plans | - | - | 200 [PlanSchema]
GET    /billing/usage/aggregated | get_aggregated_usage | USAGE | - | 200 AggregatedUsageSchema
GET    /billing/usage/connection-usage | list_connection_usage | start_date:date end_date:date +limit +offset | - | 200 [ConnectionUsageSchema]
`;

/** Operations beside the sixty: method, path, operation id. The document marks them. */
export const ADDITIONS: readonly [operation: string, operation_id: string][] = [
  ['GET /overview/activity', 'list_activity'],
  ['GET /overview/recent_runs', 'list_recent_runs'],
  ['POST /users/{user_id}/invitation', 'invite_user'],
  ['POST /invitations/accept', 'accept_invitation'],
  ['GET /users/me/api_keys', 'list_api_keys'],
  ['POST /users/me/api_keys', 'rotate_api_key'],
  ['DELETE /users/me/api_keys/{api_key_id}', 'revoke_api_key'],
  ['POST /api_keys', 'create_api_key'],
  ['GET /service_accounts', 'list_service_accounts'],
  ['POST /service_accounts', 'create_service_account'],
  ['GET /users/me/sessions', 'list_sessions'],
  ['DELETE /users/me/sessions/{session_id}', 'end_session'],
  ['GET /automation/rule_language', 'get_rule_language'],
  ['POST /automation/notifications', 'set_up_notifications'],
  ['POST /automation/notification_tests', 'test_notifications'],
  ['GET /automation/notification_settings', 'get_notification_settings'],
  ['POST /automation/notification_settings', 'update_notification_settings'],
  ['POST /automation/drift_reports', 'report_drift'],
  ['GET /automation/applied_files', 'list_applied_files'],
  ['POST /automation/applied_files', 'record_applied_file'],
  ['POST /automation/applied_files/{applied_file_id}/compare', 'compare_applied_file'],
  ['DELETE /automation/applied_files/{applied_file_id}', 'forget_applied_file'],
  ['GET /connection_summaries', 'list_connection_summaries'],
  ['GET /pipeline_templates', 'list_pipeline_templates'],
  ['POST /account_connector_checks', 'check_account_connector'],
  ['POST /connection_checks', 'check_connection'],
  ['POST /schedules/preview', 'preview_schedule'],
  ['POST /stream_previews', 'preview_stream'],
  ['POST /page_trials', 'try_page'],
  ['POST /definition_drafts', 'draft_definition'],
  ['POST /connector_rights', 'describe_connector_rights'],
  ['GET /custom_connectors', 'list_custom_connectors'],
  ['POST /custom_connectors', 'create_custom_connector'],
  ['GET /custom_connectors/{connector_name}', 'get_custom_connector'],
  ['POST /custom_connectors/{connector_name}', 'update_custom_connector'],
  ['DELETE /custom_connectors/{connector_name}', 'delete_custom_connector'],
  ['POST /custom_connectors/{connector_name}/previews', 'preview_custom_connector'],
  ['POST /oauth_consents', 'begin_oauth_consent'],
  ['GET /oauth_consents/{oauth_consent_id}', 'get_oauth_consent'],
  ['POST /account_connectors/{account_connector_id}/dataset_trials', 'try_dataset'],
  ['POST /account_connectors/{account_connector_id}/schema_tests', 'test_destination_schema'],
  [
    'POST /connections/{connection_id}/runs/{connection_run_id}/stream_runs/{stream_run_id}/table_previews',
    'preview_table',
  ],
  ['POST /connections/{connection_id}/change_previews', 'preview_changes'],
  [
    'GET /connections/{connection_id}/runs/{connection_run_id}/stream_runs/{stream_run_id}/rejected_rows',
    'list_rejected_rows',
  ],
  ['GET /connections/{connection_id}/schema_changes', 'list_schema_changes'],
  ['POST /connections/{connection_id}/schema_changes/review', 'review_schema_changes'],
  ['GET /connections/{connection_id}/runs/{connection_run_id}', 'get_connection_run'],
  ['GET /connections/{connection_id}/runs/{connection_run_id}/log', 'list_run_log'],
  ['GET /connections/{connection_id}/runs/{connection_run_id}/trends', 'list_run_trends'],
  ['GET /account_connectors/{account_connector_id}/catalog', 'get_account_connector_catalog'],
  ['GET /account_connectors/{account_connector_id}/discovery', 'get_discovery'],
  ['POST /account_connectors/{account_connector_id}/discover', 'discover_catalog'],
  ['GET /account_connectors/{account_connector_id}/secret_uses', 'list_secret_uses'],
  ['GET /account_connectors/{account_connector_id}/webhook', 'get_webhook_inbox'],
  ['POST /account_connectors/{account_connector_id}/webhook/rotate', 'rotate_webhook_address'],
  ['POST /account_connectors/{account_connector_id}/differing_parameters', 'list_differing_parameters'],
  ['GET /tasks/{task_id}', 'get_task'],
  ['POST /tasks/{task_id}/export_link', 'create_export_link'],
  ['GET /custom_run_plans/{plan_id}', 'get_custom_run_plan'],
  ['POST /billing/plan', 'change_plan'],
  ['GET /audit_log', 'list_audit_log'],
  ['GET /audit_log/export', 'export_audit_log'],
  ['POST /audit_log/verify', 'verify_audit_log'],
  ['POST /connections/{connection_id}/verifications', 'verify_connection'],
  ['GET /connections/{connection_id}/verifications', 'list_verifications'],
  ['GET /verifications/{verification_id}', 'get_verification'],
  ['POST /verifications/{verification_id}/stop', 'stop_verification'],
  ['POST /connections/{connection_id}/log_marks', 'mark_log'],
  ['GET /connections/{connection_id}/log_progress', 'get_log_progress'],
  ['POST /connections/{connection_id}/sequences/advance', 'advance_sequences'],
  ['POST /connection_folders/move', 'move_connection_folder'],
  ['GET /saved_views', 'list_saved_views'],
  ['POST /saved_views', 'create_saved_view'],
  ['POST /saved_views/{saved_view_id}', 'update_saved_view'],
  ['DELETE /saved_views/{saved_view_id}', 'delete_saved_view'],
];

const USAGE = 'date_range:AggregateUsageDateRange=current_billing_period start_date:date|null? end_date:date|null?';

/** The prefixes below which nothing else may be served. */
export const PREFIXES = [
  '/connections',
  '/connection_runs',
  '/connectors',
  '/account_connectors',
  '/users',
  '/roles',
  '/automation',
  '/billing',
];

export interface Expected {
  method: string;
  path: string;
  operation_id: string;
  /** `place name type`, and ` = value` or ` ?` when it may be absent; in the order of their names. */
  parameters: string[];
  /** Names of parameters that the interface does not have. */
  added: string[];
  /** `Name`, `Name?` or `multipart Name`; null: none. */
  body: string | null;
  status: number;
  /** As written in the table. */
  response: string;
}

export const ENDPOINTS: Expected[] = TABLE.split('\n')
  .filter((line) => line !== '')
  .map((line) => {
    const [operation = '', operation_id = '', query = '', body = '', success = ''] = line.split(' | ');
    const [method = '', typedPath = ''] = operation.split(/ +/);
    const inPath = [...typedPath.matchAll(/\{(\w+)(?::(\w+))?\}/g)].map(
      ([, name, type]) => `path ${name} ${type ?? 'string'}`,
    );
    const words = query
      .replace('USAGE', USAGE)
      .split(' ')
      .filter((word) => word !== '-');
    const inQuery = words.filter((word) => !word.startsWith('+')).map(queryParameter);
    return {
      method,
      path: typedPath.replaceAll(/:\w+/g, ''),
      operation_id,
      parameters: [...inPath, ...inQuery].toSorted(),
      added: words.filter((word) => word.startsWith('+')).map((word) => word.slice(1)),
      body: body === '-' ? null : body,
      status: Number(success.slice(0, 3)),
      response: success.slice(4),
    };
  });

function queryParameter(word: string): string {
  const [, name, type, absent] = /^(\w+):([\w|]+)(\?|=\w+)?$/.exec(word) ?? [];
  if (!name) throw new Error(`not understood: ${word}`);
  return `query ${name} ${type}${absent === undefined ? '' : absent === '?' ? ' ?' : ` = ${absent.slice(1)}`}`;
}
